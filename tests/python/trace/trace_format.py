"""Checks events against the Trace Event Format, as its documentation describes it.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: which keys each phase requires, which
metadata there is, what binds flow events, how complete events of one row nest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Row = tuple[int, int]

# Keys that each phase requires in addition to `ph`.
REQUIRED = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts"},
    "M": {"name", "pid", "tid", "args"},
}
# Keys required in the args of each metadata event.
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}
ROUNDING = 0.0005  # of a microsecond: times are written to the nanosecond


def problems(events: Iterable[Event]) -> list[str]:
    """A sentence for each violation. Rules about several events are checked only if each event is valid by itself."""
    events = list(events)
    found = [problem for event in events for problem in _problems_of(event)]
    return found or [*_order(events), *_nesting(events), *_flows(events), *_unnamed(events)]


def read(path: Path) -> dict[str, Any]:
    """Reads the JSON object format: an object with `traceEvents`."""
    content = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    assert content["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(content["traceEvents"], list)
    return content


def _problems_of(event: Event) -> Iterable[str]:
    phase = event.get("ph")
    if phase not in REQUIRED:
        yield f"unknown phase: {event}"
        return
    if missing := REQUIRED[phase] - set(event):
        yield f"lacks {sorted(missing)}: {event}"
        return
    for key in ("pid", "tid"):
        if not isinstance(event[key], int):
            yield f"{key} is not an integer: {event}"
    for key in {"ts", "dur"} & set(event):
        if not isinstance(event[key], int | float) or event[key] < 0:
            yield f"{key} is not a number of at least 0: {event}"
    if phase == "M" and METADATA.get(event["name"]) not in event["args"]:
        yield f"not metadata of the format: {event}"
    if phase == "f" and event.get("bp", "e") != "e":
        yield f"unknown binding point: {event}"


def _order(events: list[Event]) -> Iterable[str]:
    times = [event["ts"] for event in events if "ts" in event]
    if times != sorted(times):
        yield "the events are not in the order of their times"


def _spans(events: list[Event]) -> dict[Row, list[Event]]:
    rows = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append(event)
    return rows


def _nesting(events: list[Event]) -> Iterable[str]:
    """ "Complete events of one thread must be nested or disjoint." They are in the order of their times."""
    for spans in _spans(events).values():
        ends: list[float] = []
        for event in spans:
            end = event["ts"] + event["dur"]
            while ends and ends[-1] <= event["ts"] + ROUNDING:
                ends.pop()
            if ends and end > ends[-1] + ROUNDING:
                yield f"begins inside of another event and ends outside: {event}"
            ends.append(end)


def _flows(events: list[Event]) -> Iterable[str]:
    """A flow begins once, ends once, later or at the same time, and both ends are inside a span of their row."""
    rows = _spans(events)
    flows: dict[tuple[str, str, Any], dict[str, Event]] = defaultdict(dict)
    for event in events:
        if event["ph"] not in "sf":
            continue
        key = (event["cat"], event["name"], event["id"])
        if event["ph"] in flows[key]:
            yield f"the flow {key} has two events of phase {event['ph']}"
        flows[key][event["ph"]] = event
        spans = rows[event["pid"], event["tid"]]
        if not any(span["ts"] <= event["ts"] <= span["ts"] + span["dur"] for span in spans):
            yield f"bound to no span: {event}"
    for key, ends in flows.items():
        if set(ends) != {"s", "f"}:
            yield f"the flow {key} has only {set(ends)}"
        elif ends["s"]["ts"] > ends["f"]["ts"]:
            yield f"the flow {key} ends before it begins"


def _unnamed(events: list[Event]) -> Iterable[str]:
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    for row in _spans(events):
        if row not in threads:
            yield f"the row {row} has no name"
        if row[0] not in processes:
            yield f"the process {row[0]} has no name"
