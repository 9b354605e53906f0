"""Events are queried with their own device's context current, in every thread."""

from __future__ import annotations

import pytest

from .place import prints

TWO_DEVICES = """
first, second = bascule.device(0), bascule.device(1)

def recorded_on(device):
    with device:
        x = bascule.device_array(32, "f4")
        start, end = bascule.event(), bascule.event()
        start.record()
        x.fill(1)
        end.record()
    return start, end

def in_a_new_thread(work):
    '''A thread in which no context is current, and where no call made one current before.'''
    failures = []
    def run():
        current = ctypes.c_void_p()
        assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0 and not current.value
        try:
            work()
        except BaseException as error:
            failures.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for failure in failures:
        raise failure
"""

USES = {
    "query": "end.synchronize(); assert end.query()",
    "synchronize": "end.synchronize()",
    "elapsed": "end.synchronize(); assert start.elapsed(end) >= 0",
    "record": "start.record(other_stream); end.record(other_stream)",
    "wait": "end.wait(); end.wait(other_stream)",
    "destroy": "events.clear(); del start, end; gc.collect()",
}


def outcome(program: str, uses: tuple[int, ...] = (0, 1)) -> str:
    return prints(TWO_DEVICES + program, uses=uses)


@pytest.mark.parametrize("device", ["first", "second"])
@pytest.mark.parametrize("use", list(USES))
def test_an_event_can_be_used_in_a_thread_without_a_current_context(device, use):
    printed = outcome(
        f"""
events = list(recorded_on({device}))
with {device}:
    other_stream = bascule.stream()
def work():
    start, end = events
    {USES[use]}
in_a_new_thread(work)
print("done")
""",
        uses=(0,) if device == "first" else (0, 1),
    )
    assert printed == "done\n"


@pytest.mark.parametrize("use", ["query", "synchronize", "elapsed", "destroy"])
def test_an_event_can_be_used_while_another_devices_context_is_current(use):
    printed = outcome(f"""
events = list(recorded_on(second))
with first:
    bascule.device_array(1, "f4")
    start, end = events
    {USES[use]}
print("done")
""")
    assert printed == "done\n"


def test_what_waits_for_a_device_in_a_new_thread_releases_what_its_streams_kept():
    printed = outcome("""
kernel = bascule.compile("__global__ void shift(float* x) { x[threadIdx.x] += 1; }").shift
with second:
    stream = bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=stream)
    for _ in range(200):                            # past some markers
        kernel[1, 32, stream](x)
del x
in_a_new_thread(lambda: bascule.synchronize())
def wait_for_second():
    with second:
        bascule.synchronize()
in_a_new_thread(wait_for_second)
print(bascule._bascule._owners_held())
""")
    assert printed == "0\n"


def test_a_trace_of_another_device_can_be_begun_and_ended_in_new_threads():
    printed = outcome("""
import json
with second:
    x = bascule.to_device(np.ones(32, "f4"))
def work():
    for _ in range(3):
        x.fill(2)
with bascule.trace("/dev/null") as trace:
    in_a_new_thread(work)
print("done")
""")
    assert printed == "done\n"


def test_a_real_driver_refuses_an_event_of_another_context_and_calls_without_one():
    """The other tests rely on this: the emulated driver refuses both."""
    printed = outcome("""
event = recorded_on(second)[1]
# Only repr shows the handle.
handle = ctypes.c_void_p(int(repr(event).split()[1], 16))
bascule.device_array(1, "f4")
with first:
    stream = bascule.stream()
print(driver.cuEventRecord(handle, ctypes.c_void_p(stream.handle)))
def work():
    milliseconds = ctypes.c_float()
    print(driver.cuEventQuery(handle), driver.cuEventSynchronize(handle),
          driver.cuEventRecord(handle, ctypes.c_void_p(stream.handle)),
          driver.cuEventElapsedTime(ctypes.byref(milliseconds), handle, handle), driver.cuEventDestroy_v2(handle))
in_a_new_thread(work)
""")
    assert printed == "400\n201 201 201 201 201\n"
