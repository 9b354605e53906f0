"""`bascule.plot_timeline`: draws a trace with matplotlib."""

import json
import os
from collections.abc import Iterable
from typing import Any

from bascule import _bascule, _errors
from bascule._trace import Trace

# Colours by category; other categories are grey. Based on Okabe and Ito's palette for colour-blind readers.
_COLOURS = {
    "kernel": "#0072B2",
    "launch": "#56B4E9",
    "graph launch": "#56B4E9",
    "copy to device": "#009E73",
    "copy to host": "#D9A400",
    "copy": "#7FBC41",
    "fill": "#A6761D",
    "read": "#BBBBBB",
    "compile": "#D55E00",
    "load": "#CC79A7",
    "wait": "#999999",
    "synchronize": "#DDDDDD",
}
_BAR = 0.8  # fraction of a row's height
HOST = 1  # process number of the host's rows
Event = dict[str, Any]
RowKey = tuple[int, int]  # process, thread


@_bascule._public
def plot_timeline(trace: Trace | str | os.PathLike[str], ax: Any = None) -> Any:
    """Draw a trace with matplotlib: a row per thread of the host and per stream of a device, waits as arrows.

    Nested calls are drawn lower in their row. Names are written where they fit.

    Parameters
    ----------
    trace : Trace, str or os.PathLike
        A recorded trace, or the file that `bascule.trace` wrote.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; new axes by default, as high as the rows need.

    Returns
    -------
    matplotlib.axes.Axes
        `.figure.savefig("run.png")` saves the picture.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ArgumentTypeError, ArgumentValueError
        `trace` is not a trace or a file of one.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> with bascule.trace() as trace:
    ...     module.scale[8, 128](x, 2, 1000)
    >>> bascule.plot_timeline(trace).figure.savefig("run.png")
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            'bascule.plot_timeline needs matplotlib: pip install "bascule[plot]"', name="matplotlib"
        ) from None
    events, metadata = _read(trace)
    rows = _rows(events)
    if ax is None:
        _, ax = plt.subplots(figsize=(12, 1.2 + 0.55 * max(len(rows), 1)), layout="constrained")
    bars = [event for event in events if event["ph"] == "X"]
    unit, scale = _unit(bars)
    _draw_bars(ax, bars, rows, scale)
    _draw_waits(ax, events, rows, scale)
    _label(ax, rows, events, f"time ({unit})", metadata)
    return ax


def _read(trace: Trace | str | os.PathLike[str]) -> tuple[list[Event], Event]:
    if isinstance(trace, Trace):
        return trace.events, trace.metadata
    if not isinstance(trace, str | os.PathLike):
        raise _errors.ArgumentTypeError(
            f"`trace` must be what bascule.trace recorded or the path of its file; got {type(trace).__name__}."
        )
    with open(trace, encoding="utf-8") as file:
        try:
            content = json.load(file)
            return content["traceEvents"], content.get("otherData", {})
        except (ValueError, KeyError, TypeError):
            raise _errors.ArgumentValueError(
                f"`trace` names {os.fspath(trace)!r}, which is not a file that bascule.trace wrote."
            ) from None


def _rows(events: Iterable[Event]) -> dict[RowKey, int]:
    """Map each row to its position from the top: threads of the host, then the streams of each device."""
    order = {
        (event["pid"], event["tid"]): event["args"]["sort_index"]
        for event in events
        if event["name"] == "thread_sort_index"
    }
    return {key: row for row, key in enumerate(sorted(order, key=lambda key: (key[0], order[key])))}


def _unit(bars: list[Event]) -> tuple[str, float]:
    longest = max((event["ts"] + event["dur"] for event in bars), default=0)
    if longest >= 1e6:
        return "s", 1e-6
    return ("ms", 1e-3) if longest >= 1e3 else ("µs", 1.0)


def _depths(bars: list[Event]) -> list[int]:
    """Return the nesting depth of each bar. The bars are ordered by time."""
    open_ends: dict[RowKey, list[float]] = {}
    depths = []
    for event in bars:
        ends = open_ends.setdefault((event["pid"], event["tid"]), [])
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        depths.append(len(ends))
        ends.append(event["ts"] + event["dur"])
    return depths


def _draw_bars(ax: Any, bars: list[Event], rows: dict[RowKey, int], scale: float) -> None:
    last = max((event["ts"] + event["dur"] for event in bars), default=1.0)
    ax.set_xlim(-0.005 * last * scale, 1.005 * last * scale)
    pixels = ax.get_window_extent().width / max(last, 1e-9)
    groups: dict[tuple[float, float, str, bool, int], list[tuple[float, float]]] = {}
    for event, depth in zip(bars, _depths(bars), strict=True):
        row = rows[event["pid"], event["tid"]]
        height = _BAR / 2 ** min(depth, 3)
        colour = _COLOURS.get(event["cat"], "#BBBBBB")
        left, width = event["ts"] * scale, event["dur"] * scale
        wide = event["dur"] * pixels > 6
        groups.setdefault((row + _BAR / 2 - height, height, colour, wide, depth), []).append((left, width))
        name = _short_name(event)
        if depth == 0 and 5.5 * len(name) < event["dur"] * pixels:
            light = colour in ("#BBBBBB", "#DDDDDD", "#56B4E9", "#999999", "#D9A400", "#7FBC41")
            # Names on the host are in the upper half of the bar, because nested calls cover the lower half.
            at = row - _BAR / 4 if event["pid"] == HOST else row
            style = {"color": "black" if light else "white", "fontsize": 7, "ha": "center", "va": "center"}
            ax.text(left + width / 2, at, name, clip_on=True, zorder=9, **style)
    for (bottom, height, colour, wide, depth), spans in groups.items():
        # A white line separates neighbours. A bar narrower than a line would be all white, so it gets its own colour.
        edge = "white" if wide else colour
        ax.broken_barh(spans, (bottom, height), facecolors=colour, edgecolors=edge, linewidth=0.8, zorder=2 + depth)


def _short_name(event: Event) -> str:
    """Shorten an event's name: a kernel without its parameters, a file without its directory."""
    call, _, subject = str(event["name"]).partition(" ")
    if event["cat"] in ("compile", "load"):
        return f"{call} {os.path.basename(subject)}"
    return str(event["name"]).partition("(")[0]


def _draw_waits(ax: Any, events: list[Event], rows: dict[RowKey, int], scale: float) -> None:
    begins = {event["id"]: event for event in events if event["ph"] == "s" and event["name"] == "wait"}
    for end in events:
        # A trace at its limit may lack the beginning.
        if end["ph"] != "f" or end["name"] != "wait" or end["id"] not in begins:
            continue
        begin = begins[end["id"]]
        upper, lower = rows[begin["pid"], begin["tid"]], rows[end["pid"], end["tid"]]
        towards = 1 if lower > upper else -1
        ax.annotate(
            "",
            xy=(end["ts"] * scale, lower - towards * _BAR / 2),
            xytext=(begin["ts"] * scale, upper + towards * _BAR / 2),
            arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
            zorder=8,
        )


def _label(ax: Any, rows: dict[RowKey, int], events: list[Event], time: str, metadata: Event) -> None:
    from matplotlib.patches import Patch

    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    ax.set_yticks(list(rows.values()), [names[key] for key in rows])
    ax.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    for process in sorted({process for process, _ in rows} - {HOST}):
        first = min(row for (owner, _), row in rows.items() if owner == process)
        ax.axhline(first - 0.5, color="0.8", linewidth=0.8)
    ax.set_xlabel(time + (" — emulated device: its times mean nothing for a GPU" if "emulated" in metadata else ""))
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    used = dict.fromkeys(event["cat"] for event in events if event["ph"] == "X")
    patches = [Patch(color=_COLOURS[category], label=category) for category in _COLOURS if category in used]
    if patches:
        ax.legend(
            handles=patches, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(patches), frameon=False, fontsize=8
        )


plot_timeline.__module__ = "bascule"
