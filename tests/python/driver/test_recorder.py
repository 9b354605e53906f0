"""Bascule records its driver calls on any driver, in the form of the emulated device's trace.

So the tests of order, of conformance and of graphs run on a GPU too.
"""

from __future__ import annotations

import textwrap

from child_process import printed_by

from .place import OPENING, prints

# One operation of each kind; handles are numbered in the order in which they appear.
EVERYTHING = """
bascule.stream()  # the context is there
with bascule.emulated.trace():
    pass  # from now on kernels have names
module = bascule.compile("__global__ void add(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }")
with bascule.emulated.trace() as operations:
    p, c = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=p)
    y = bascule.to_device(np.ones(32, "f4"), stream=c)
    module.add[1, 32, c](x, y)
    with bascule.Graph() as graph:
        module.add[1, 32](x, y)
    graph.launch(c)
    y.fill(1)
    y.copy()
    pinned, managed = bascule.pinned_array(8, "f4"), bascule.managed_array(8, "f4")
    event = bascule.event()
    event.record(p)
    c.wait(event)
    event.synchronize()
    for _ in range(200):
        module.add[1, 32, c](y, y)  # with markers, which are bookkeeping
    bascule.synchronize()
    try:
        bascule.device_array(1 << 50, "u1")  # more than there is
    except bascule.CudaError:
        pass  # a call that failed is no operation
    y.copy_to_host()
    del pinned, managed
numbers = {0: 0, 1: 1, 2: 2}
for o in operations:
    handles = [numbers.setdefault(handle, len(numbers)) for handle in (o.stream, o.event)]
    print(o.kind, *handles, o.bytes, o.name, o.device)
"""


def on_the_emulated_device(program: str) -> str:
    opening = OPENING.replace('ctypes.CDLL("libcuda.so.1")', "None")
    return printed_by("-c", opening + textwrap.dedent(program), BASCULE_DEVICE="emulated")


def test_what_is_recorded_on_a_driver_is_what_the_emulated_device_records():
    recorded = prints(EVERYTHING)
    assert recorded.splitlines() == on_the_emulated_device(EVERYTHING).splitlines()
    kinds = {line.split()[0] for line in recorded.splitlines()}
    assert kinds == {
        *("record", "wait", "launch", "copy", "fill", "allocate", "free"),
        *("synchronize", "create", "graph"),
    }


def test_calls_of_a_function_are_counted_on_a_driver_too():
    printed = prints("""
        count = bascule._bascule._driver_calls
        p = bascule.stream()
        before = count("cuStreamSynchronize")
        p.synchronize()
        p.synchronize()
        print(count("cuStreamSynchronize") - before, count("cuNoSuchFunction"))
    """)
    assert printed == "2 0\n"
