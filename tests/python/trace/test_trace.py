"""`bascule.trace`: what is recorded, in which rows, with which arrows; and errors."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from child_process import run_python

import bascule

from .trace_format import problems, read

SOURCE = """
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
__global__ void fault(float* p) { p[1 << 30] = 1; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    module = bascule.compile(SOURCE)
    module.scale.prepare()
    return module


def ones(stream: bascule.Stream | None = None) -> bascule.DeviceArray:
    return bascule.to_device(np.ones(64, "f4"), stream=stream)


def spans(trace: bascule.Trace, category: str, *, host: bool) -> list[dict]:
    return [
        event
        for event in trace.events
        if event["ph"] == "X" and event["cat"] == category and (event["pid"] == 1) == host
    ]


def arrows(trace: bascule.Trace, name: str) -> list[tuple[dict, dict]]:
    """Both ends of each arrow, as the spans that they are bound to."""

    def span_of(end: dict) -> dict:
        inside = [
            event
            for event in trace.events
            if event["ph"] == "X"
            and (event["pid"], event["tid"]) == (end["pid"], end["tid"])
            and event["ts"] <= end["ts"] <= event["ts"] + event["dur"]
        ]
        return max(inside, key=lambda event: event["ts"])

    begins = {event["id"]: event for event in trace.events if event["ph"] == "s" and event["name"] == name}
    ends = {event["id"]: event for event in trace.events if event["ph"] == "f" and event["name"] == name}
    assert set(begins) == set(ends)
    return [(span_of(begins[key]), span_of(ends[key])) for key in begins]


def test_a_launch_is_on_the_threads_row_and_its_kernel_on_the_streams(module):
    x = ones()
    with bascule.trace() as trace:
        module.scale[2, 32, None, 64](x, 2, 64)  # this line is in the trace
    assert problems(trace.events) == []
    (launch,) = spans(trace, "launch", host=True)
    (kernel,) = spans(trace, "kernel", host=False)
    assert launch["name"] == "launch scale"
    assert launch["tid"] == threading.get_native_id()
    assert kernel["name"] == "scale(float* p, float f, int n)"
    for args in (launch["args"], kernel["args"]):
        assert (args["grid"], args["block"], args["shared_bytes"]) == ([2, 1, 1], [32, 1, 1], 64)
        assert "test_trace.py:" in args["place"]
        assert "# this line is in the trace" in args["place"]
        assert args["stream"] == hex(x.stream.handle)
    assert arrows(trace, "issue") == [(launch, kernel)]
    (read_arguments,) = spans(trace, "read", host=True)
    assert read_arguments["ts"] + read_arguments["dur"] <= launch["ts"]


def test_the_rows_have_names(module):
    stream = bascule.stream()
    x, y = ones(), ones(stream)
    with bascule.trace() as trace:
        module.scale[2, 32](x, 2, 64)
        module.scale[2, 32](y, 2, 64)
    names = [event["args"]["name"] for event in trace.events if event["name"] == "thread_name"]
    assert names == [threading.current_thread().name, "legacy default stream", f"stream {stream.handle:#x}"]
    host, device = [event["args"]["name"] for event in trace.events if event["name"] == "process_name"]
    assert host.startswith("host: ")
    assert device.startswith("device 0: ")


def test_an_arrow_leads_from_what_a_kernel_waits_for_and_to_what_waits_for_it(module):
    front, back = bascule.stream(), bascule.stream()
    with bascule.trace() as trace:
        x = ones(front)
        module.scale[2, 32, back](x, 2, 64)
        x.copy_to_host()
    (wait,) = spans(trace, "wait", host=True)
    assert wait["name"] == f"wait for stream {front.handle:#x}"
    (up,) = spans(trace, "copy to device", host=False)
    (kernel,) = spans(trace, "kernel", host=False)
    (down,) = spans(trace, "copy to host", host=False)
    assert up["tid"] == down["tid"] != kernel["tid"]
    assert arrows(trace, "wait") == [(up, kernel), (kernel, down)]
    assert problems(trace.events) == []


def test_the_programs_own_events_are_waits_too(module):
    front, back = bascule.stream(), bascule.stream()
    x, y, done = ones(front), ones(back), bascule.event()
    with bascule.trace() as trace:
        module.scale[2, 32, front](x, 2, 64)
        done.record(front)
        back.wait(done)
        module.scale[2, 32, back](y, 2, 64)
    first, second = spans(trace, "kernel", host=False)
    assert arrows(trace, "wait") == [(first, second)]


def test_copies_and_fills_have_their_bytes(module):
    with bascule.trace() as trace:
        x = ones()
        x.fill(3)
        x.copy().copy_to_host()
    for kind in ("copy to device", "fill", "copy", "copy to host"):
        assert [event["args"]["bytes"] for event in spans(trace, kind, host=False)] == [256], kind
    assert problems(trace.events) == []


def test_a_compile_says_whether_the_cache_had_it():
    text = "__global__ void named_in_no_other_test(float* p) { *p = 1; }"
    with bascule.trace() as trace:
        bascule.compile(text).named_in_no_other_test.prepare()
        bascule.cache.clear()
        bascule.compile(text + " ").named_in_no_other_test.prepare()
        bascule.compile(text, options={"fast_math": True}).named_in_no_other_test.prepare()
    found = [(event["args"]["cache"], event["args"]["from"]) for event in spans(trace, "compile", host=True)]
    assert ("miss", "compiled") in found
    assert len(spans(trace, "load", host=True)) == 3
    assert problems(trace.events) == []


def test_a_compile_that_the_disk_has_is_a_hit():
    text = "__global__ void kept_on_disk(float* p) { *p = 2; }"
    bascule.compile(text, options={"defines": {"A": "1"}}).kept_on_disk.prepare()
    bascule.cache.clear()  # the memory cache
    with bascule.trace() as trace:
        bascule._bascule._make_module(
            text, "again.cu", 1, "", bascule.CompileOptions(defines={"A": "1"}), []
        ).kept_on_disk.prepare()
    (compiled,) = spans(trace, "compile", host=True)
    assert compiled["args"] == {"cache": "hit", "from": "disk"}
    assert compiled["name"] == "compile again.cu"


def test_a_graphs_launch_is_one_span_and_what_it_captures_has_none(module):
    x = ones()
    with bascule.trace() as trace:
        with bascule.Graph() as graph:
            module.scale[2, 32](x, 2, 64)
            module.scale[2, 32](x, 2, 64)
        graph.launch()
    np.testing.assert_array_equal(x.copy_to_host(), np.full(64, 4, "f4"))
    assert [event["args"]["captured"] for event in spans(trace, "launch", host=True)] == [True, True]
    assert spans(trace, "kernel", host=False) == []
    (on_device,) = spans(trace, "graph launch", host=False)
    assert on_device["name"] == "graph"
    assert problems(trace.events) == []


def test_a_trace_that_begins_and_ends_inside_a_capture_does_not_break_it(module):
    x = ones()
    with bascule.Graph() as graph, bascule.trace() as trace:
        module.scale[2, 32](x, 3, 64)
    graph.launch()
    np.testing.assert_array_equal(x.copy_to_host(), np.full(64, 3, "f4"))
    assert len(spans(trace, "launch", host=True)) == 1


def test_every_thread_has_a_row(module):
    def work() -> None:
        stream = bascule.stream()
        x = ones(stream)
        for _ in range(5):
            module.scale[2, 32](x, 2, 64)
        stream.synchronize()
        ready.wait(60)

    ready = threading.Barrier(5)
    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(4)]
    with bascule.trace() as trace:
        for thread in threads:
            thread.start()
        ready.wait(60)
        for thread in threads:
            thread.join(60)
    assert problems(trace.events) == []
    assert len({event["tid"] for event in spans(trace, "launch", host=True)}) == 4
    assert len({event["tid"] for event in spans(trace, "kernel", host=False)}) == 4
    assert len(spans(trace, "kernel", host=False)) == 20


def test_the_per_thread_default_stream_is_a_row_for_each_thread(module):
    stream = bascule.per_thread_default_stream()

    def work() -> None:
        module.scale[2, 32, stream](ones(stream), 2, 64)
        stream.synchronize()

    with bascule.trace() as trace:
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
    first, second = spans(trace, "kernel", host=False)
    assert first["tid"] != second["tid"]
    names = [event["args"]["name"] for event in trace.events if event["name"] == "thread_name" and event["pid"] > 1]
    assert all(name.startswith("default stream of ") for name in names)


def test_the_end_of_the_block_waits_for_the_kernels(module, emulated):
    x = ones()
    with bascule.trace() as trace:
        for _ in range(3):
            module.scale[2, 32](x, 2, 64)  # the schedule is lazy: nothing runs before something waits
    assert len(spans(trace, "kernel", host=False)) == 3
    assert "operations without times" not in trace.metadata


def test_the_file_has_the_events_and_says_that_the_device_is_emulated(module, tmp_path, emulated):
    x = ones()
    with bascule.trace(tmp_path / "run.json") as trace:
        module.scale[2, 32](x, 2, 64)
    content = read(tmp_path / "run.json")
    assert content["traceEvents"] == trace.events
    assert problems(content["traceEvents"]) == []
    assert "mean nothing for a GPU" in content["otherData"]["emulated"]
    trace.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "run.json").read_text()


def test_an_exception_in_the_block_still_writes_the_file(module, tmp_path):
    def fail() -> None:
        with bascule.trace(tmp_path / "run.json"):
            module.scale[2, 32](ones(), 2, 64)
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fail()
    assert problems(read(tmp_path / "run.json")["traceEvents"]) == []


def test_a_file_that_cannot_be_written_is_an_error_but_does_not_hide_the_blocks_own(module, tmp_path):
    with pytest.raises(IsADirectoryError), bascule.trace(tmp_path):
        pass
    with pytest.raises(RuntimeError, match="mine") as caught, bascule.trace(tmp_path):
        raise RuntimeError("mine")
    assert "could not be written" in caught.value.__notes__[0]
    with bascule.trace():  # nothing is left from the first
        pass


def test_a_launch_that_is_refused_leaves_no_kernel_and_no_time_to_the_next(module):
    x = ones()
    with bascule.trace() as trace:
        with pytest.raises(TypeError):
            module.scale[2, 32](x, 2, "many")
        module.scale[2, 32](x, 2, 64)
    assert len(spans(trace, "read", host=True)) == 2
    assert len(spans(trace, "launch", host=True)) == len(spans(trace, "kernel", host=False)) == 1


def test_a_kernel_that_faults_is_in_the_trace(module, emulated, unordered):
    try:
        with bascule.trace() as trace:
            module.fault[1, 1](ones())
            with pytest.raises(bascule.CudaError, match="illegal address"):
                bascule.synchronize()
        assert [event["name"] for event in spans(trace, "launch", host=True)] == ["launch fault"]
        assert problems(trace.events) == []
    finally:
        bascule.emulated.reset()


def test_one_trace_at_a_time(module):
    with bascule.trace() as outer:
        with pytest.raises(bascule.Error, match="recorded already"):
            bascule.trace().__enter__()
        failures = []

        def enter() -> None:
            try:
                bascule.trace().__enter__()
            except bascule.Error as error:
                failures.append(str(error))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(60)
        assert len(failures) == 1
        module.scale[2, 32](ones(), 2, 64)
    assert len(spans(outer, "launch", host=True)) == 1


def test_a_trace_is_recorded_once_and_read_afterwards():
    trace = bascule.trace()
    with pytest.raises(bascule.Error, match="nothing was recorded"):
        _ = trace.events
    with trace, pytest.raises(bascule.Error, match="still being recorded"):
        trace.save("nowhere.json")
    with pytest.raises(bascule.Error, match="make another one"), trace:
        pass
    assert "0 calls" in repr(trace)


def test_the_limit_bounds_what_is_kept_and_says_so(module):
    x = ones()
    trace = bascule.trace(limit=4)
    trace.__enter__()
    for _ in range(10):
        module.scale[2, 32](x, 2, 64)
    with pytest.warns(UserWarning, match=r"lacks 16 calls, because it records 4 at most"):
        trace.__exit__(None, None, None)
    assert trace.dropped == 16
    assert "16 calls" in trace.metadata["dropped"]
    assert len([event for event in trace.events if event["ph"] == "X" and event["pid"] == 1]) == 4
    assert problems(trace.events) == []


def test_more_operations_than_events_are_kept_for(module):
    x = ones()
    launch = module.scale[2, 32].bind(x, 1, 64)
    with bascule.trace() as trace:
        for _ in range(1500):
            launch()
    assert len(spans(trace, "kernel", host=False)) == 1500
    assert problems(trace.events) == []


def test_operations_of_the_trace_are_not_the_programs(module, emulated):
    x = ones()
    module.scale[2, 32](x, 2, 64)
    with bascule.emulated.trace() as alone:
        module.scale[2, 32](x, 2, 64)
    with bascule.trace(), bascule.emulated.trace() as traced:
        module.scale[2, 32](x, 2, 64)
    assert [operation for operation in traced if operation.kind != "create"] == alone


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"path": 3}, TypeError, "`path` must be the name of a file"),
        ({"path": "missing/run.json"}, ValueError, "no directory 'missing'"),
        ({"limit": 0}, ValueError, "`limit` must be an integer of at least 1"),
        ({"limit": 2.5}, ValueError, "`limit` must be an integer"),
    ],
)
def test_a_wrong_argument_is_named(arguments, error, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        bascule.trace(**arguments)


# --- Signals and forks ------------------------------------------------------------------------------------------------


class Interrupts:
    """A signal handler that raises at the n-th line of Python that runs from now on.

    Lines of `threading` are not counted: an exception before a lock's release, where no real signal handler runs, would
    leave the lock locked for the rest of the process.
    """

    def __init__(self, after: int) -> None:
        self.left = after

    def trace(self, frame, event, argument):
        if frame.f_code.co_filename == threading.__file__:
            return None
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.trace


@pytest.mark.parametrize("nth", range(1, 60, 2))
@pytest.mark.parametrize("where", ["begin", "end"])
def test_an_interrupt_while_a_trace_begins_or_ends_leaves_none_behind(module, where, nth, tmp_path):
    x = ones()
    before = sys.gettrace()
    interrupts = Interrupts(nth)
    try:
        trace = bascule.trace(tmp_path / "run.json")
        if where == "begin":
            sys.settrace(interrupts.trace)
        with trace:
            module.scale[1, 64](x, 2, 64)
            if where == "end":
                sys.settrace(interrupts.trace)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    with bascule.trace() as again:
        module.scale[1, 64](x, 2, 64)
    assert spans(again, "kernel", host=False)


def test_a_real_signal_at_any_time_leaves_no_trace_behind():
    program = """
import signal, sys, bascule
def ignored(unraisable):
    # A callback of a weak reference cannot raise: import has some, and Python drops the signal that meets one of those.
    if "importlib" not in getattr(unraisable.object, "__module__", ""):
        sys.__unraisablehook__(unraisable)
sys.unraisablehook = ignored
bascule.trace  # its module is imported: Python 3.11 makes another error of a signal in the middle of a class
raised = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
for n in range(1, 300):
    try:
        signal.setitimer(signal.ITIMER_REAL, n * 1e-6)
        for _ in range(10):
            with bascule.trace():
                pass
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        raised += 1
signal.setitimer(signal.ITIMER_REAL, 0)
with bascule.trace() as trace:
    pass
assert raised > 20, raised
assert trace.events
"""
    ended = run_python("-c", program)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_block_that_is_interrupted_is_a_trace_as_far_as_it_came():
    trace = bascule.trace()
    with pytest.raises(KeyboardInterrupt), trace:
        raise KeyboardInterrupt
    assert trace.events
    with pytest.raises(bascule.Error, match="recorded already"):
        trace.__enter__()


FORKS = """
import os, sys, warnings
import bascule

# Python 3.12 on warns of every fork of a process with threads; a driver has threads of its own.
warnings.filterwarnings("ignore", "This process .*is multi-threaded", DeprecationWarning)
options = bascule.CompileOptions(arch="compute_80")
parents, childs = sys.argv[1:]
trace = bascule.trace(parents)
with trace:
    bascule.compile("__global__ void k() {} // before", options=options)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    bascule.compile("__global__ void k() {} // after", options=options)
if child:
    sys.exit()
try:
    trace.events
    os._exit(3)
except bascule.Error as error:
    assert str(os.getppid()) in str(error) and "forked" in str(error), error
if os.path.exists(parents):
    os._exit(4)
with bascule.trace(childs):
    pass
os._exit(0)
"""


def test_a_fork_inside_a_trace_leaves_the_trace_to_the_parent(tmp_path):
    files = [tmp_path / "parent.json", tmp_path / "child.json"]
    ended = run_python("-c", FORKS, *files)
    assert (ended.returncode, ended.stderr) == (0, "")
    events = [read(file)["traceEvents"] for file in files]
    compiles = [[event for event in each if event.get("cat") == "compile"] for each in events]
    assert [len(each) for each in compiles] == [2, 0]
