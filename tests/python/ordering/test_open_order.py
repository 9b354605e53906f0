"""Rule 10: control never returns while a producer could overtake. Rules 14 and 15: the owners kept meanwhile."""

from __future__ import annotations

import gc
import weakref

import pytest
from child_process import run_python
from plain_launches import add, array_on, prepared

import bascule

# The kernel runs inside the launch call (eager) until another thread releases it, after destroying the stream that
# should wait: the fence after the launch fails.
PRODUCER_GOES = """
import ctypes, threading
import numpy as np
import bascule

wait = bascule.compile('''
__global__ void wait(const float* x, volatile int* go, int* done) {
    while (*go == 0) {}
    *done = x[0] == 1;
}''').wait
driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
p, c = bascule.stream(), bascule.stream()
x = bascule.to_device(np.ones(4, "f4"), stream=p)
p.synchronize()
memory = bascule.pinned_array(2, "i4")
go, done = (bascule.as_cuda_array(memory[k:k + 1], sync=False) for k in range(2))
flags = np.asarray(memory)
flags[0] = 1
wait[1, 1, c](x, go, done)
c.synchronize()
flags[:] = 0
started = bascule._bascule._driver_calls("cuLaunchKernelEx")

def let_go():
    while bascule._bascule._driver_calls("cuLaunchKernelEx") == started:
        pass
    assert driver.cuStreamDestroy_v2(ctypes.c_void_p(p.handle)) == 0
    flags[0] = 1

thread = threading.Thread(target=let_go)
waits = bascule._bascule._driver_calls("cuStreamSynchronize")
thread.start()
try:
    wait[1, 1, c](x, go, done)
except bascule.CudaError as error:
    print(error.call, "argument 1" in str(error), flags[1],
          bascule._bascule._driver_calls("cuStreamSynchronize") - waits)
thread.join()
import os
os._exit(0)  # p's owner would destroy it again
"""


@pytest.mark.usefixtures("stale_handles")
def test_rule_10_when_the_fence_fails_the_host_waits_before_the_error_is_raised():
    child = run_python("-u", "-c", PRODUCER_GOES, BASCULE_EMULATED_SCHEDULE="eager")
    assert child.stdout.split() == ["cuStreamWaitEvent", "True", "1", "1"], child.stderr


def test_rule_14_the_owner_of_a_producer_stream_is_kept_with_the_array():
    class Owner:
        """Another library's stream, destroyed with its last owner."""

        def __init__(self):
            self.stream = bascule.stream()

    owner, c = Owner(), bascule.stream()
    arrays = [array_on(owner.stream) for _ in range(3)]
    for array in arrays:
        array.owner = owner
    alive = weakref.ref(owner)
    prepared(*arrays)
    add()[1, 32, c](*arrays)
    del owner, arrays, array
    gc.collect()
    assert alive() is not None
    c.synchronize()
    gc.collect()
    assert alive() is None


def test_rule_15_markers_are_bookkeeping_and_in_no_trace():
    stream = bascule.stream()
    arrays = [array_on(stream) for _ in range(3)]
    prepared(*arrays)
    with bascule.emulated.trace() as operations:
        for _ in range(200):
            add()[1, 32, stream](*arrays)
    assert [o for o in operations if o.kind in ("record", "wait")] == []
