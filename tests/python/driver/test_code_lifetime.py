"""Graphs and pending launches keep the code that they run, because the driver unloads it without regard to them."""

from __future__ import annotations

import pytest

from .place import prints, run_on_driver

# Each module is compiled in a function, so that only the tested objects keep it alive.
KERNELS = """
def unloads():
    return driver.bascule_emulated_call_count(b"cuLibraryUnload")

def module(factor):
    return bascule.compile('''
        __device__ float written[32];
        __global__ void scale(float* x) { x[threadIdx.x] *= %d; }
        __global__ void write() { written[threadIdx.x] = %d; }''' % (factor, factor))

def wait():
    assert driver.cuCtxSynchronize() == 0

driver.bascule_emulated_call_count.restype = ctypes.c_uint64
x = bascule.to_device(np.ones(32, "f4"))
"""


def outcome(program: str, **changes: str) -> str:
    return prints(KERNELS + program, **{"BASCULE_EMULATED_SCHEDULE": "lazy", **changes})


def test_a_graph_keeps_the_code_that_it_captured_until_it_is_gone():
    printed = outcome("""
held = module(3)
held.scale.prepare()
with bascule.Graph() as graph:
    held.scale[1, 32](x)
del held
gc.collect()
for _ in range(2):
    graph.launch()
wait()
print(x.copy_to_host()[0], unloads())
del graph
bascule.synchronize()
print(unloads())
""")
    assert printed == "9.0 0\n1\n"


def test_a_graph_that_captures_anew_lets_the_old_code_go():
    printed = outcome("""
old, new = module(3), module(5)
old.scale.prepare()
new.scale.prepare()
with bascule.Graph() as graph:
    old.scale[1, 32](x)
graph.launch()
with graph.update():
    new.scale[1, 32](x)
del old
bascule.synchronize()
print(unloads())
del new
graph.launch()
bascule.synchronize()
print(unloads(), x.copy_to_host()[0])
""")
    assert printed == "1\n1 15.0\n"


@pytest.mark.parametrize("stream", ["None", "bascule.stream()", "bascule.per_thread_default_stream()"])
def test_a_pending_launch_keeps_its_code(stream):
    printed = outcome(f"""
stream = {stream}
module(3).scale[1, 32, stream](x)
gc.collect()
print(unloads())
bascule.synchronize()
print(unloads(), x.copy_to_host()[0])
""")
    assert printed == "0\n1 3.0\n"


def test_a_pending_launch_keeps_its_code_though_it_has_no_arrays():
    printed = outcome("""
module(3).write[1, 32]()
gc.collect()
print(unloads())
bascule.synchronize()
print(unloads())
""")
    assert printed == "0\n1\n"


def test_a_bound_launch_that_goes_keeps_its_code_until_it_has_run():
    printed = outcome("""
for name, arguments in (("scale", (x,)), ("write", ())):
    bound = module(3)[name][1, 32].bind(*arguments)
    bound()
    bound()
    del bound
    gc.collect()
    before = unloads()
    bascule.synchronize()
    print(before, unloads())
print(x.copy_to_host()[0])
""")
    assert printed == "0 1\n1 2\n9.0\n"


def test_code_is_kept_for_the_launches_of_every_stream():
    printed = outcome("""
y = bascule.to_device(np.ones(32, "f4"))
bascule.synchronize()
first, second = bascule.stream(), bascule.stream()
held = module(3)
held.scale[1, 32, first](bascule.as_cuda_array(x, sync=False))
held.scale[1, 32, second](bascule.as_cuda_array(y, sync=False))
del held
first.synchronize()
print(unloads())
second.synchronize()
print(unloads(), y.copy_to_host()[0])
""")
    assert printed == "0\n1 3.0\n"


def test_code_that_nothing_uses_is_unloaded_at_once():
    printed = outcome("""
held = module(3)
held.scale[1, 32](x)
bascule.synchronize()
del held
print(unloads())
""")
    assert printed == "1\n"


def test_a_graph_of_another_library_keeps_the_code_that_it_captured():
    printed = outcome("""
stream, graph, executable = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
held = module(3)
held.write.prepare()
held.scale[1, 32, stream.value](x)
wait()
assert driver.cuStreamBeginCapture_v2(stream, 0) == 0
held.scale[1, 32, stream.value](bascule.as_cuda_array(x, sync=False))
held.write[1, 32, stream.value]()
assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
del held
gc.collect()
bascule.synchronize()
assert driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
assert driver.cuGraphDestroy(graph) == 0
assert driver.cuGraphLaunch(executable, stream) == 0
wait()
print(unloads(), x.copy_to_host()[0])
assert driver.cuGraphExecDestroy(executable) == 0
bascule.synchronize()
print(unloads())
""")
    assert printed == "0 9.0\n1\n"


def test_a_launch_whose_code_was_unloaded_is_a_fault_that_says_so():
    """The other tests rely on this: the emulated driver is as strict as a real one may be."""
    ended = run_on_driver(
        KERNELS
        + """
library, kernel, p = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
ptx = module(3).scale.ptx.encode()
assert driver.cuLibraryLoadData(ctypes.byref(library), ptx, None, None, 0, None, None, 0) == 0
lines = ptx.decode().splitlines()
name = next(line.split("(")[0].split()[-1] for line in lines if ".entry" in line and "scale" in line)
assert driver.cuLibraryGetKernel(ctypes.byref(kernel), library, name.encode()) == 0
pointer = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
assert driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None) == 0
assert driver.cuLibraryUnload(library) == 0
print(driver.cuCtxSynchronize())
report = ctypes.create_string_buffer(4096)
driver.bascule_emulated_last_report(report, ctypes.c_size_t(4096))
print(report.value.decode())
""",
        BASCULE_EMULATED_SCHEDULE="lazy",
    )
    code, _, report = ended.stdout.partition("\n")
    assert code == "700", ended.stdout + ended.stderr
    assert "kernel 'scale" in report
    assert "its code was unloaded" in report
    assert "Unload code when its launches have finished" in report
