"""Arrays used in another library's capture are kept alive, however the host waited before.

The library tells Bascule of no wait and no capture: all are driver calls, as those of CuPy and PyTorch are.
"""

from __future__ import annotations

import pytest

from .place import prints

CAPTURES = """
source = '''
__global__ void add(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }
__global__ void shift(float* x) { x[threadIdx.x] += 1; }'''
module = bascule.compile(source)
module.add.prepare()
module.shift.prepare()

def check(code):
    assert code == 0, code

def new_stream():
    stream = ctypes.c_void_p()
    check(driver.cuStreamCreate(ctypes.byref(stream), 1))
    return stream

def wait():
    check(driver.cuCtxSynchronize())

def begin(stream, mode=0):
    check(driver.cuStreamBeginCapture_v2(stream, mode))

def end(stream):
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
    check(driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)))
    check(driver.cuGraphDestroy(graph))
    return executable

def replay(executable, stream, times=1):
    for _ in range(times):
        check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))

class Foreign:
    '''An array of a library that works on `stream`.'''
    def __init__(self, value, stream):
        self.array = bascule.to_device(np.full(32, value, "f4"))
        self.stream = stream
        bascule.synchronize()
    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, "stream": self.stream.value}

def reuse_freed_memory():
    '''What was freed too early is another array's now.'''
    gc.collect()
    wait()
    return [bascule.to_device(np.full(32, -1, "f4")) for _ in range(8)]

def intact(others):
    return all((each.copy_to_host() == -1).all() for each in others)

def queries():
    return driver.bascule_emulated_call_count(b"cuStreamIsCapturing")

driver.bascule_emulated_call_count.restype = ctypes.c_uint64
"""


def outcome(program: str, **changes: str) -> str:
    return prints(CAPTURES + program, **changes)


@pytest.mark.parametrize("warm_up", [0, 1, 3, 63, 64, 65])
def test_what_is_captured_on_the_stream_of_the_warm_up_is_kept(warm_up):
    """The usual pattern of CuPy and PyTorch: warm up on a side stream, wait, capture there, replay later."""
    printed = outcome(f"""
side = new_stream()
x, y = Foreign(2, side), Foreign(1, side)
out = y.array
for _ in range({warm_up}):
    module.add[1, 32](x, y)
wait()
begin(side)
for _ in range(3):
    module.add[1, 32](x, y)
executable = end(side)
del x, y
others = reuse_freed_memory()
replay(executable, side, 2)
print(out.copy_to_host()[0] == 1 + 2 * ({warm_up} + 6), intact(others))
""")
    assert printed == "True True\n"


BOUND_LAUNCHES = """
x, out = (bascule.to_device(np.full(32, value, "f4"), stream=stream) for value in (2, 1))
bound = module.add[1, 32].bind(x, out)
for _ in range(3):
    bound()
side = ctypes.c_void_p(stream.handle)
wait()
begin(side)
bound()
executable = end(side)
del bound, x
others = reuse_freed_memory()
replay(executable, side)
expected = 1 + 2 * 4
"""

PATTERNS = {
    "torch.cuda.graph": """
side, main = new_stream(), new_stream()
x, y = Foreign(2, side), Foreign(1, side)
out = y.array
event = ctypes.c_void_p()
check(driver.cuEventCreate(ctypes.byref(event), 2))
for _ in range(3):                                  # the warm-up, ordered by events with the main stream
    module.add[1, 32](x, y)
check(driver.cuEventRecord(event, side))
check(driver.cuStreamWaitEvent(main, event, 0))
wait()                                              # torch.cuda.synchronize
begin(side)
module.add[1, 32](x, y)
executable = end(side)
del x, y
others = reuse_freed_memory()
replay(executable, main, 2)
expected = 1 + 2 * 5
""",
    "cupy.cuda.Stream.begin_capture": """
side = new_stream()
stream = bascule.external_stream(side.value)
out = bascule.to_device(np.ones(32, "f4"), stream=stream)
with stream:
    x = bascule.to_device(np.full(32, 2, "f4"))
    module.add[1, 32](x, out)                       # compiles and warms up
check(driver.cuStreamSynchronize(side))
begin(side, 2)                                      # CuPy's default mode is relaxed
with stream:
    module.add[1, 32](x, out)
executable = end(side)
del x
others = reuse_freed_memory()
replay(executable, side)
expected = 1 + 2 * 2
""",
    "two captures in a row": """
side = new_stream()
x, y = Foreign(2, side), Foreign(1, side)
out = y.array
begin(side)
module.add[1, 32](x, y)
first = end(side)
begin(side)
module.add[1, 32](x, y)
module.add[1, 32](x, y)
executable = end(side)
del x, y
check(driver.cuGraphExecDestroy(first))
bascule.synchronize()
others = reuse_freed_memory()
replay(executable, side)
expected = 1 + 2 * 2
""",
    "a stream of Bascule's that gave its handle out": """
stream = bascule.stream()
x, out = (bascule.to_device(np.full(32, value, "f4"), stream=stream) for value in (2, 1))
for _ in range(3):
    module.add[1, 32](x, out)
side = ctypes.c_void_p(HANDLE)
wait()
begin(side)
module.add[1, 32](x, out)
executable = end(side)
del x
others = reuse_freed_memory()
replay(executable, side)
expected = 1 + 2 * 4
""",
    "bound launches": "stream = bascule.external_stream(new_stream().value)" + BOUND_LAUNCHES,
    "bound launches on a stream whose handle was given out meanwhile": "stream = bascule.stream()" + BOUND_LAUNCHES,
    "a hidden stream that joins the capture by an event": """
side, stream = new_stream(), bascule.stream()
fork, join = bascule.event(timing=False), bascule.event(timing=False)
x, out = (bascule.to_device(np.full(32, value, "f4"), stream=stream) for value in (2, 1))
for _ in range(3):
    module.add[1, 32](x, out)
wait()
begin(side)
fork.record(side.value)
stream.wait(fork)
module.add[1, 32](x, out)
join.record(stream)
join.wait(side.value)
executable = end(side)
del x
others = reuse_freed_memory()
replay(executable, side)
expected = 1 + 2 * 4
""",
}

HANDLES = ["stream.handle", "stream.__cuda_stream__()[1]", "x.__cuda_array_interface__['stream']"]
PROGRAMS = [
    pytest.param(program.replace("HANDLE)", f"{handle})"), id=f"{name}-{handle}" if "HANDLE)" in program else name)
    for name, program in PATTERNS.items()
    for handle in (HANDLES if "HANDLE)" in program else HANDLES[:1])
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_patterns_of_other_libraries_keep_their_arrays(program):
    printing = "print(out.copy_to_host()[0] == expected, intact(others))\n"
    assert outcome(program + printing) == "True True\n"


def test_copies_and_fills_that_are_captured_keep_their_arrays():
    printed = outcome("""
side = new_stream()
stream = bascule.external_stream(side.value)
x, out = (bascule.to_device(np.full(32, value, "f4"), stream=stream) for value in (2, 1))
x.copy()
wait()
begin(side)
out[...] = x
x.fill(7)
executable = end(side)
del x
others = reuse_freed_memory()
replay(executable, side)
print(out.copy_to_host()[0], intact(others))
replay(executable, side)
print(out.copy_to_host()[0], intact(others))
""")
    assert printed == "2.0 True\n7.0 True\n"


def test_a_hidden_stream_is_never_asked_and_another_one_at_each_launch():
    printed = outcome("""
stream = bascule.stream()
x = bascule.to_device(np.ones(32, "f4"), stream=stream)
def asked():
    wait()
    before = queries()
    for _ in range(20):
        module.shift[1, 32](x)
    return queries() - before
print(asked(), asked())
stream.handle
print(asked())
side = new_stream()
x = Foreign(1, side)
print(asked())
x = bascule.to_device(np.ones(32, "f4"))
print(asked())
""")
    assert printed == "0 0\n20\n20\n0\n"
