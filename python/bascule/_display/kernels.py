"""Displays of kernels, modules, launchers and launch rules. Nothing is compiled or loaded for them."""

import inspect
import keyword
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bascule import _bascule, _decorator, _errors, _places
from bascule._display import plots
from bascule._display.document import Code, Document, Figure, Table, bytes_text
from bascule._display.source_text import find_definition

_MOST_SOURCE_LINES = 60
_WARP = 32

_ORIGINS = {
    "compiled": "compiled by NVRTC in {:.3g} ms",
    "memory": "from the cache in memory (NVRTC took {:.3g} ms)",
    "disk": "from the cache on disk (NVRTC took {:.3g} ms)",
}


# --- Displays


def kernel(kernel: _bascule.Kernel) -> Document:
    """Show what is known of a kernel; if it is loaded on the current device, also registers, memory and occupancy."""
    facts = _bascule._kernel_facts(kernel)
    pairs = [("declared at", place) for place in _declared_at(facts)]
    pairs += [("device", facts["device"]), ("code", _state(facts))]
    parts: list[Table | Figure] = []
    if facts["parameters"]:
        parts.append(Table(("parameter", "C++ type"), facts["parameters"], code=(0, 1)))
    if facts["instances"]:
        rows = [_instance_row(each) for each in facts["instances"]]
        parts.append(_without_empty(Table(("instances so far", "registers", "code"), rows, code=(0,))))
    if facts["is_loaded"]:
        try:
            pairs += _loaded(kernel)
            blocks = range(_WARP, kernel.attributes.max_threads_per_block + 1, _WARP)
            occupied = [(block, kernel.occupancy(block).ratio) for block in blocks]
            parts.append(plots.occupancy(occupied, kernel.best_block()))
        except _errors.Error as error:  # the context is lost after a fault
            pairs.append(("on the device", f"not available: {_first_line(error)}"))
    return Document("Kernel", facts["signature"], pairs, parts)


def module(module: _bascule.Module) -> Document:
    """Show the module's kernels, with signatures and lines."""
    file, first_line = _bascule._module_place(module)
    rows = []
    for name in type(module).kernels.__get__(module):
        each = module[name]
        facts = _bascule._kernel_facts(each)
        lines = ", ".join(str(first_line + line - 1) for line in facts["lines"])
        rows.append((name, facts["signature"], lines, _registers(each, facts), str(len(facts["instances"]) or "")))
    head = ("kernel", "signature", "line", "registers", "instances")
    return Document("Module", file, [], [_without_empty(Table(head, rows, code=(0, 1)))])


def launcher(launcher: _bascule.Launcher) -> Document:
    """Show the configuration, and options that are not the defaults."""
    facts = _bascule._launcher_facts(launcher)
    return Document("Launcher", _bascule._kernel_facts(facts["kernel"])["signature"], _configuration(facts))


def bound_launch(bound: _bascule.BoundLaunch) -> Document:
    """Show the configuration and the arguments."""
    facts = _bascule._bound_facts(bound)
    known = _bascule._kernel_facts(facts["kernel"])
    parameters = known["parameters"] or []
    named = facts["named"] or {}
    values = list(facts["positional"])
    values += [named[name] for name, _ in parameters[len(values) :] if name in named]
    rows = [(name, spelling, _argument(value)) for (name, spelling), value in zip(parameters, values, strict=False)]
    parts = [Table(("parameter", "C++ type", "bound"), rows, code=(0, 1))] if rows else []
    return Document("BoundLaunch", known["signature"], _configuration(facts), parts)


def launch_rule(rule: _decorator.LaunchRule) -> Document:
    """Show the rule, and what is known of its kernel."""
    subject = f"{rule.__name__}{rule._rule_signature}"
    known = _kernel_of(rule)
    if known is None:
        return Document("LaunchRule", subject, [], [Code(_shortened(rule._source.strip("\n")))])
    own = kernel(known)
    return Document("LaunchRule", subject, [("kernel", own.subject), *own.facts], own.parts)


# --- Documentation and signatures


def documentation(kernel: _bascule.Kernel | _decorator.LaunchRule) -> str:
    """Return the C++ signature, the comment above the kernel, its parameters, and its text."""
    known = _kernel_of(kernel) if isinstance(kernel, _decorator.LaunchRule) else kernel
    if known is None:
        return "A launch rule, whose kernel a compile would have to find."
    facts = _bascule._kernel_facts(known)
    found = (find_definition(facts["text"], facts["name"], line) for line in facts["lines"])
    definitions = [each for each in found if each is not None]
    lines = [facts["signature"], ""]
    for definition in definitions:
        if definition.comment:
            lines += [definition.comment, ""]
    if facts["parameters"]:
        lines += ["Parameters", "----------"]
        lines += [f"{name} : {spelling}" for name, spelling in facts["parameters"]]
        lines.append("")
    lines += [f"Declared at {place}." for place in _declared_at(facts)]
    for definition in definitions:
        lines += ["", textwrap.indent(_shortened(definition.code.strip("\n")), "    ")]
    return "\n".join(lines)


def signature(
    object: _bascule.Kernel | _bascule.Launcher | _bascule.BoundLaunch | _decorator.LaunchRule,
) -> inspect.Signature:
    """Return a signature of the C++ parameters, with their C++ types as annotations."""
    if isinstance(object, _decorator.LaunchRule):
        return _rule_signature(object)
    if isinstance(object, _bascule.BoundLaunch):
        return inspect.Signature(return_annotation=None)  # all arguments are bound
    known = _bascule._launcher_facts(object)["kernel"] if isinstance(object, _bascule.Launcher) else object
    return _signature_of(_bascule._kernel_facts(known)["parameters"])


def _signature_of(parameters: Sequence[tuple[str, str]] | None) -> inspect.Signature:
    if parameters is None:  # overloads
        every = inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)
        return inspect.Signature([every], return_annotation=None)
    # A parameter whose name cannot be written as a keyword argument is positional-only, and so are all before it.
    unwritable = [i for i, (name, _) in enumerate(parameters) if keyword.iskeyword(name) or not name.isidentifier()]
    last = max(unwritable, default=-1)
    made = []
    for i, (name, spelling) in enumerate(parameters):
        kind: Any = inspect.Parameter.POSITIONAL_ONLY if i <= last else inspect.Parameter.POSITIONAL_OR_KEYWORD
        if "..." in spelling:
            kind, name = inspect.Parameter.VAR_POSITIONAL, name.removesuffix("1")
        if not name.isidentifier():
            name = f"arg{i + 1}"
        made.append(inspect.Parameter(name, kind, annotation=spelling))
    return inspect.Signature(made, return_annotation=None)


def _rule_signature(rule: _decorator.LaunchRule) -> inspect.Signature:
    """Return the signature of the Python function with the C++ types as annotations."""
    own = rule._rule_signature
    known = _kernel_of(rule)
    parameters = _bascule._kernel_facts(known)["parameters"] if known is not None else None
    if parameters is None or len(parameters) != len(own.parameters):
        return own
    typed = [
        each.replace(annotation=spelling)
        for each, (_, spelling) in zip(own.parameters.values(), parameters, strict=True)
    ]
    return own.replace(parameters=typed, return_annotation=None)


def _kernel_of(rule: _decorator.LaunchRule) -> _bascule.Kernel | None:
    """Return the rule's kernel. Before the first call, look it up in the source text; None if that needs a compile."""
    if rule._kernel is not None:
        return rule._kernel
    name, first_line = _places.find(rule._source, rule._sites)
    try:
        module = _bascule._make_module(rule._source, name, first_line, "", _bascule.CompileOptions(), ())
    except _errors.CompileError:
        return None
    names = type(module).kernels.__get__(module)
    wanted = rule._kernel_among(names)
    return module[wanted] if wanted in names else None


# --- Pieces


def _state(facts: dict[str, Any]) -> str:
    if facts["is_loaded"]:
        return f"loaded, for {facts['arch']}"
    if facts["is_compiled"]:
        return f"compiled for {facts['arch']}; the first launch or .prepare() loads it"
    if facts["is_function"]:
        return "not compiled yet; the first launch or .prepare() compiles it"
    if len(facts["lines"]) > 1:
        return "overloads: the arguments of a launch, or .overload(...), choose one"
    return "a template: the arguments of a launch, or .instantiate(...), choose an instance"


def _declared_at(facts: dict[str, Any]) -> list[str]:
    return [f"{facts['file']}:{facts['first_line'] + line - 1}" for line in facts["lines"]]


def _loaded(kernel: _bascule.Kernel) -> list[tuple[str, str]]:
    attributes = kernel.attributes
    return [
        ("origin", _origin(kernel)),
        ("registers", f"{attributes.registers} per thread"),
        ("shared memory", f"{bytes_text(attributes.static_shared_bytes)} per block, static"),
        ("local memory", f"{bytes_text(attributes.local_bytes)} per thread"),
        ("constant memory", bytes_text(attributes.constant_bytes)),
        ("threads per block", f"at most {attributes.max_threads_per_block:,}"),
    ]


def _origin(kernel: _bascule.Kernel) -> str:
    return f"{_ORIGINS[kernel.origin].format(kernel.compile_ms)}, loaded in {kernel.load_ms:.3g} ms"


def _instance_row(instance: _bascule.Kernel) -> tuple[str, str, str]:
    facts = _bascule._kernel_facts(instance)
    registers = _registers(instance, facts)
    if facts["is_loaded"]:
        return facts["signature"], registers, _origin(instance)
    return facts["signature"], registers, "compiled, not loaded yet" if facts["is_compiled"] else "not compiled yet"


def _registers(kernel: _bascule.Kernel, facts: dict[str, Any]) -> str:
    """Return the number of registers as text; empty before the kernel is loaded."""
    if not facts["is_loaded"]:
        return ""
    try:
        return str(kernel.attributes.registers)
    except _errors.Error as error:
        return f"not available: {_first_line(error)}"


def _without_empty(table: Table) -> Table:
    """Return the table without its empty columns."""
    used = [column for column in range(len(table.head)) if any(row[column] for row in table.rows)]
    rows = [tuple(row[column] for column in used) for row in table.rows]
    return Table(tuple(table.head[column] for column in used), rows, table.code)


def _configuration(facts: dict[str, Any]) -> list[tuple[str, str]]:
    config = facts["config"]
    pairs = []
    if facts["work"]:
        pairs.append(("work", f"{' x '.join(map(str, facts['work']))} threads"))
    if config is not None:
        threads = math.prod(config.grid) * math.prod(config.block)
        pairs += [
            ("grid", f"{_extents(config.grid)} blocks"),
            ("block", f"{_extents(config.block)} threads, {threads:,} in all"),
            ("shared memory", f"{bytes_text(config.shared_bytes)} per block, dynamic"),
        ]
        pairs += _attributes(config)
    else:
        pairs.append(("grid", "nothing is launched" if 0 in facts["work"] else "chosen at the first launch"))
    pairs.append(("stream", facts["stream"] or "chosen at each launch"))
    if facts["peer"]:
        pairs.append(("peer", "arrays of other devices are accepted"))
    if not facts["sync"]:
        pairs.append(("sync", "the arrays' streams are ignored"))
    pairs += [("stream of", f"{parameter}: {stream}") for parameter, stream in facts["streams"]]
    return pairs


def _attributes(config: _bascule.LaunchConfig) -> Iterator[tuple[str, str]]:
    plain = _bascule.LaunchConfig(config.grid, config.block, shared_bytes=config.shared_bytes)
    for name, attribute in vars(_bascule.LaunchConfig).items():
        if isinstance(attribute, property) and (value := getattr(config, name)) != getattr(plain, name):
            shown = _extents(value) if isinstance(value, tuple) else value
            meaning = str(attribute.__doc__).partition(", ")[2]  # after the type
            yield name, meaning if value is True else f"{shown}: {meaning}"


def _extents(extents: tuple[int, int, int]) -> str:
    used = max((i + 1 for i in range(3) if extents[i] != 1), default=1)
    return " x ".join(map(str, extents[:used]))


def _argument(value: Any) -> str:
    """Describe a bound argument. Does not read arrays, because that would wait."""
    if isinstance(value, _bascule.DeviceArray):
        return f"{value.dtype} array of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        return repr(value)[:80]
    return type(value).__name__


def _shortened(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _MOST_SOURCE_LINES:
        return text
    return "\n".join([*lines[:_MOST_SOURCE_LINES], f"... and {len(lines) - _MOST_SOURCE_LINES} more lines"])


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
