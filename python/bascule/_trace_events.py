"""What was recorded as events of the Trace Event Format, which Perfetto and chrome://tracing read."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from bascule import _bascule

__all__ = ["HOST", "device_process", "make_events", "make_metadata"]

HOST = 1  # the process of the host's rows
EMULATED = "The device is emulated: its times are those of a CPU and mean nothing for a GPU."

Record = dict[str, Any]
Event = dict[str, Any]
Row = tuple[int, int, int]  # device, stream handle, and the thread where the handle is the per-thread default stream


def device_process(device: int) -> int:
    """The process of a device's rows: its streams are threads of it."""
    return HOST + 1 + device


def make_metadata(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says about itself."""
    metadata: dict[str, Any] = {"recorded by": f"Bascule {_bascule.__version__}", "command": " ".join(sys.argv)}
    for number, device in sorted(recorded["devices"].items()):
        metadata[f"device {number}"] = device.name
        if device.emulated:
            metadata["emulated"] = EMULATED
    untimed = sum("operation" in record and "ran" not in record for record in recorded["records"])
    if untimed:
        metadata["operations without times"] = untimed
    if recorded["dropped"]:
        metadata["dropped"] = f"{recorded['dropped']} calls beyond the limit are missing."
    return metadata


def make_events(recorded: Mapping[str, Any], thread_names: Mapping[int, str]) -> list[Event]:
    """Metadata first, then everything by its time; times are microseconds since the trace began."""
    records: list[Record] = recorded["records"]
    start = recorded["begin"]
    spans = _device_spans(records, recorded["devices"])
    rows: dict[Row, int] = {}
    for record in records:
        if "operation" in record:
            rows.setdefault(_row_of(record), len(rows) + 1)
    events = [_host_event(record, start) for record in records]
    for record in records:
        if record.get("operation") in spans:
            events += _device_events(record, spans[record["operation"]], rows[_row_of(record)], start)
    events += _arrows(records, spans, rows, start)
    # Those that begin together: the outer one first, and arrows after what they are bound to.
    events.sort(key=lambda event: (event["ts"], event["ph"] != "X", -event.get("dur", 0)))
    return [*_names(recorded, rows, thread_names), *events]


def _row_of(record: Record) -> Row:
    return record["device"], record["stream"], record["thread"] if record["stream"] == 2 else 0


def _device_spans(records: list[Record], devices: Mapping[int, Any]) -> dict[int, tuple[int, int]]:
    """From when to when each operation ran, by its number.

    A GPU's clock is known to a microsecond or so. There an operation begins after its call, after the one before it on
    its stream, and after those that it waited for, whatever the rounding says.
    """
    spans: dict[int, tuple[int, int]] = {}
    ends: dict[Row, int] = defaultdict(int)
    for record in sorted((record for record in records if "ran" in record), key=lambda record: record["operation"]):
        begin, end = record["ran"]
        if not devices[record["device"]].emulated:
            awaited = [spans[number][1] for number in record["after"] if number in spans]
            begin = max([begin, record["begin"], ends[_row_of(record)], *awaited])
            end = max(begin, end)
        ends[_row_of(record)] = end
        spans[record["operation"]] = begin, end
    return spans


def _microseconds(nanoseconds: int) -> float:
    return nanoseconds / 1000


def _complete(name: str, category: str, process: int, thread: int, begin: int, end: int, args: Event) -> Event:
    times = {"ts": _microseconds(begin), "dur": _microseconds(end - begin)}
    return {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, **times, "args": args}


def _arguments(record: Record) -> Event:
    args: Event = {}
    for key in ("signature", "grid", "block", "shared_bytes", "bytes", "place", "captured"):
        if key in record:
            args[key] = list(record[key]) if isinstance(record[key], tuple) else record[key]  # as in the file
    if "stream" in record:
        args["stream"] = f"{record['stream']:#x}"
    if "origin" in record:
        args["cache"] = "miss" if record["origin"] == "compiled" else "hit"
        args["from"] = record["origin"]
    return args


def _host_event(record: Record, start: int) -> Event:
    begin, end = record["begin"] - start, record["end"] - start
    return _complete(record["name"], record["kind"], HOST, record["thread"], begin, end, _arguments(record))


def _device_name(record: Record) -> str:
    if record["kind"] == "launch":
        return str(record["signature"]).removeprefix("void ")
    return "graph" if record["kind"] == "graph launch" else str(record["kind"])


def _device_events(record: Record, span: tuple[int, int], row: int, start: int) -> Iterator[Event]:
    """The device's part of a call, and the arrow that leads to it."""
    begin, end = span[0] - start, span[1] - start
    category = "kernel" if record["kind"] == "launch" else record["kind"]
    process = device_process(record["device"])
    yield _complete(_device_name(record), category, process, row, begin, end, _arguments(record))
    arrow = {"name": "issue", "cat": "issue", "id": f"issue {record['operation']}"}
    yield {**arrow, "ph": "s", "pid": HOST, "tid": record["thread"], "ts": _microseconds(record["begin"] - start)}
    yield {**arrow, "ph": "f", "bp": "e", "pid": process, "tid": row, "ts": _microseconds(begin)}


def _arrows(
    records: list[Record], spans: Mapping[int, tuple[int, int]], rows: Mapping[Row, int], start: int
) -> Iterator[Event]:
    """From an operation to each that waited for it on another stream."""
    by_number = {record["operation"]: record for record in records if "operation" in record}
    for number, (begin, _) in spans.items():
        waiting = by_number[number]
        for awaited in waiting["after"]:
            if awaited not in spans:
                continue
            source = by_number[awaited]
            arrow = {"name": "wait", "cat": "wait", "id": f"wait {awaited} {number}"}
            # A viewer binds an arrow to the span that its time is in, which ends before its end.
            leaves = max(spans[awaited][0], spans[awaited][1] - 1) - start
            ends = {"from": (source, "s", leaves), "to": (waiting, "f", begin - start)}
            for record, phase, time in ends.values():
                place = {"pid": device_process(record["device"]), "tid": rows[_row_of(record)]}
                yield {
                    **arrow,
                    "ph": phase,
                    **({"bp": "e"} if phase == "f" else {}),
                    **place,
                    "ts": _microseconds(time),
                }


def _names(recorded: Mapping[str, Any], rows: Mapping[Row, int], thread_names: Mapping[int, str]) -> Iterator[Event]:
    def name(kind: str, process: int, thread: int, args: Event) -> Event:
        return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": args}

    program = os.path.basename(sys.argv[0]) or "python"
    yield name("process_name", HOST, 0, {"name": f"host: {program} (process {os.getpid()})"})
    yield name("process_sort_index", HOST, 0, {"sort_index": 0})
    threads = dict.fromkeys(record["thread"] for record in recorded["records"])
    for index, thread in enumerate(threads):
        yield name("thread_name", HOST, thread, {"name": thread_names.get(thread, f"thread {thread}")})
        yield name("thread_sort_index", HOST, thread, {"sort_index": index})
    for number in sorted({device for device, _, _ in rows}):
        device = recorded["devices"][number]
        kind = " (emulated)" if device.emulated and "emulated" not in device.name else ""
        yield name("process_name", device_process(number), 0, {"name": f"device {number}: {device.name}{kind}"})
        yield name("process_sort_index", device_process(number), 0, {"sort_index": 1 + number})
    for (number, stream, thread), row in rows.items():
        text = {1: "legacy default stream", 2: f"default stream of {thread_names.get(thread, f'thread {thread}')}"}
        args = {"name": text.get(stream, f"stream {stream:#x}")}
        yield name("thread_name", device_process(number), row, args)
        yield name("thread_sort_index", device_process(number), row, {"sort_index": row})
