"""Explanations of launches: streams as lanes, waits as arrows, and a table of the arguments."""

from __future__ import annotations

from bascule import _explain
from bascule._display import plots
from bascule._display.document import Document, Table


def explanation(launch: _explain.Explanation) -> Document:
    """What `str` says, with a drawing."""
    waiting = [stream for stream, _ in launch.waits]
    waits = [(stream, launch.arguments[index].name) for stream, index in launch.waits]
    named = dict.fromkeys(argument.stream for argument in launch.arguments if argument.stream is not None)
    others = [stream for stream in named if stream not in (launch.stream, *waiting)]
    facts = [
        ("device", launch.device),
        ("grid", launch._geometry()),
        ("stream", f"{launch.stream}; {_explain._CHOICES[launch.choice]}"),
        ("before the launch", launch._before()),
        ("after the launch", launch._after()),
    ]
    rows = [
        (f"{each.index + 1} {each.name}", each.declared, each.value, each.place or "", each.order)
        for each in launch.arguments
    ]
    table = Table(("argument", "declared", "passed", "where", "order"), rows, code=(1,))
    drawing = plots.lanes(launch.stream, launch.kernel, waits, others)
    return Document("Explanation", launch.signature, facts, [drawing, *([table] if rows else [])])
