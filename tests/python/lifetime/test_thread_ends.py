"""Objects of a thread's default stream (handle 2), which the driver destroys when the thread ends."""

from __future__ import annotations

import pytest
from child_process import printed_by

PROGRAM = """
import gc, threading, time, weakref
import numpy as np
import bascule

PROGRAM = '''
__global__ void note(int* x, int* flag) { x[threadIdx.x] = 3; *flag = 1; }
__global__ void hold(int* x, volatile int* flag) { while (*flag == 0) {} x[threadIdx.x] = 4; }
'''

class Foreign:
    def __init__(self, array):
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return thread.ident

module = bascule.compile(PROGRAM)
flag, other_flag = bascule.pinned_array(1, "i4"), bascule.pinned_array(1, "i4")
said = np.asarray(flag)
said[0] = 0
memory, other_memory = bascule.device_array(32, "i4"), bascule.device_array(32, "i4")
own = bascule.per_thread_default_stream
module.note.prepare(memory, flag)
module.hold.prepare(memory, flag)
bascule.synchronize()
alive = []

def leave(kernel):
    array = Foreign(memory)
    alive.append(weakref.ref(array))
    kernel[1, 32, own()](array, Foreign(flag))

def owner_lives():
    gc.collect()
    return alive[-1]() is not None

def launch_70(stream=None):
    for _ in range(70):  # past a marker
        module.note[1, 32, stream](Foreign(other_memory), Foreign(other_flag))
"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "threads"])
def test_the_work_of_an_ended_thread_is_done_and_its_owners_go(schedule: str) -> None:
    program = """
in_thread(lambda: leave(module.note))
until = time.monotonic() + 10
while said[0] == 0 and time.monotonic() < until:
    time.sleep(0.001)
launch_70()
bascule.synchronize()
print(int(said[0]), owner_lives(), (memory.copy_to_host() == 3).all())
"""
    printed = printed_by("-c", PROGRAM + program, BASCULE_DEVICE="emulated", BASCULE_EMULATED_SCHEDULE=schedule)
    assert printed == "1 False True\n"


def test_a_thread_that_gets_the_same_identifier_releases_nothing_of_the_ended_one() -> None:
    """The ending thread waits two seconds for its kernel, which waits for the host, and then ends before the kernel."""
    program = """
first = in_thread(lambda: leave(module.hold))
found = []
def look():
    if threading.get_ident() == first:
        launch_70(own())
        found.append((owner_lives(), bool(said[0] == 0)))
until = time.monotonic() + 10
while not found and time.monotonic() < until:
    in_thread(look)
    time.sleep(0.01)
print(*found)
said[0] = 1
bascule.synchronize()
print(owner_lives(), (memory.copy_to_host() == 4).all())
"""
    # The kernel waits for the host, which a busy machine may keep waiting.
    patient = {"BASCULE_EMULATED_SCHEDULE": "threads", "BASCULE_EMULATED_TIMEOUT": "100"}
    printed = printed_by("-c", PROGRAM + program, BASCULE_DEVICE="emulated", **patient)
    assert printed == "(True, True)\nFalse True\n"
