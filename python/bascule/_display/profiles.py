"""Displays of profiles."""

from bascule import _profile
from bascule._display.document import WARNING, Code, Document, Table, escape

_MOST_LINES = 40  # of a kernel: those with the most instructions
_HEAD = f"{'instructions':>12} {'lanes':>5} {'divergent':>9} {'sectors/req':>11} {'bank':>7} {'atomic':>7} {'line':>6}"


def profile(profile: _profile.Profile) -> Document:
    """Show a table of the kernels, and the source of each with the counts of its lines."""
    kernels = list(profile.kernels.values())
    facts = [("counts", "of the emulated device, the same in each run. They predict no times.")]
    if not kernels:
        return Document("emulated.Profile", "", [*facts, ("kernels", "none was launched")])
    head = ("kernel", "launches", "instructions", "lanes", "divergent branches", "sectors/request", "bank conflicts")
    rows = [
        (
            each.name,
            f"{each.launches:,}",
            f"{each.instructions:,}",
            f"{each.active_lanes:.3g}",
            f"{each.divergent_branches:,} of {each.branches:,}",
            _sectors(each) or "-",
            f"{each.bank_conflicts:,}",
        )
        for each in kernels
    ]
    return Document("emulated.Profile", "", facts, [Table(head, rows, code=(0,)), *map(_annotated, kernels)])


def _annotated(kernel: _profile.KernelProfile) -> Code:
    """The lines in the order of the source. Their background is the darker, the more instructions they executed."""
    hottest = sorted(kernel.lines, key=lambda line: line.instructions, reverse=True)[:_MOST_LINES]
    lines = [line for line in kernel.lines if line in hottest]
    rows, file = [(kernel.name, 0), (_HEAD, 0)], ""
    for line in lines:
        if line.file != file:
            file = line.file
            rows.append((file, 0))
        caller = f"  (called from {line.caller})" if line.caller else ""
        written = f"{_counts(line)} {line.line or '?':>6} {line.text}{caller}".rstrip()
        rows.append((written, 60 * line.instructions // max(hottest[0].instructions, 1)))
    if len(kernel.lines) > len(lines):
        rows.append((f"and {len(kernel.lines) - len(lines)} lines with fewer instructions", 0))
    return Code("\n".join(text for text, _ in rows), "\n".join(_shaded(*row) for row in rows))


def _shaded(text: str, percent: int) -> str:
    style = f"background:color-mix(in srgb,{WARNING} {percent}%,transparent)"
    return f"<span style='{style}'>{escape(text)}</span>" if percent else escape(text)


def _counts(line: _profile.LineProfile) -> str:
    """The columns of `_HEAD`; those of zero are blank."""
    return (
        f"{line.instructions:>12,} {line.active_lanes:>5.3g} {_unless_zero(line.divergent_branches):>9} "
        f"{_sectors(line):>11} {_unless_zero(line.bank_conflicts):>7} {_unless_zero(line.atomic_conflicts):>7}"
    )


def _sectors(counts: _profile.Counts) -> str:
    return f"{counts.sectors_per_request:.3g}" if counts.sectors_per_request else ""


def _unless_zero(count: int) -> str:
    return f"{count:,}" if count else ""
