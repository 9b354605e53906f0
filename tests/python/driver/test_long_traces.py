"""After hours, a trace's times are as precise as at its beginning."""

from __future__ import annotations

import json

from .place import prints

PROGRAM = """
import json
from bascule import _bascule
driver.bascule_emulated_advance_clock.argtypes = [ctypes.c_int64]
kernel = bascule.compile("__global__ void work(float* p) { for (int i = 0; i < 100; ++i) p[threadIdx.x] += 1; }").work
x = bascule.to_device(np.zeros(32, "f4"))
kernel.prepare(x)
hour = 3600 * 10**9
with bascule.trace() as trace:
    for _ in range(3):
        for _ in range(30):
            kernel[1, 32](x)
        bascule.synchronize()
        driver.bascule_emulated_advance_clock(hour)
        _bascule._advance_trace_clock(hour)
runs = [event for event in trace.events if event["ph"] == "X" and event["pid"] != 1 and event["cat"] == "kernel"]
print(json.dumps(sorted((round(run["ts"] * 1000), round(run["dur"] * 1000)) for run in runs)))
"""
HOUR = 3600 * 10**9
STEP_AFTER_AN_HOUR = 250_000  # ns: the spacing of floats that count milliseconds


def test_durations_and_begins_are_as_fine_after_hours():
    runs = json.loads(prints(PROGRAM))
    assert len(runs) == 90
    for hour in range(3):
        of_it = runs[30 * hour : 30 * (hour + 1)]
        assert all(hour * HOUR <= begin - runs[0][0] < (hour + 1) * HOUR for begin, _ in of_it)
        assert any(duration % STEP_AFTER_AN_HOUR for _, duration in of_it)
        assert any((begin - of_it[0][0]) % STEP_AFTER_AN_HOUR for begin, _ in of_it)
        assert all(duration >= 0 for _, duration in of_it)


def test_the_emulated_driver_counts_milliseconds_as_a_float():
    program = """
    driver.bascule_emulated_advance_clock.argtypes = [ctypes.c_int64]
    start, end = bascule.event(), bascule.event()
    start.record()
    driver.bascule_emulated_advance_clock(3600 * 10**9)
    end.record()
    end.synchronize()
    print((start.elapsed(end) if hasattr(start, "elapsed") else bascule.elapsed(start, end)) * 4 % 1)
    """
    assert float(prints(program)) == 0
