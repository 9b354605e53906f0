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
    """The ending thread waits two seconds for its kernel, which waits for the host, and then ends before the kernel.

    Two threads that run on the same stack, one after the other, have the same identifier (pthread_self) in glibc.
    """
    program = """
import ctypes, mmap

libc = ctypes.CDLL(None)
stack = mmap.mmap(-1, 8 << 20)
start = ctypes.addressof(ctypes.c_char.from_buffer(stack))

def on_the_stack(work):
    attributes, thread = ctypes.create_string_buffer(64), ctypes.c_ulong()
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstack(attributes, ctypes.c_void_p(start), ctypes.c_size_t(8 << 20))
    idents = []

    def run(_):
        idents.append(threading.get_ident())
        work()

    entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(run)
    failed = libc.pthread_create(ctypes.byref(thread), attributes, entry, None) or libc.pthread_join(thread, None)
    assert not failed, failed
    return idents[0]

def look():
    launch_70(own())
    own().synchronize()  # releases owners of this stream
    print(owner_lives(), bool(said[0] == 0))

first = on_the_stack(lambda: leave(module.hold))
assert on_the_stack(look) == first
said[0] = 1
bascule.synchronize()
print(owner_lives(), (memory.copy_to_host() == 4).all())
"""
    # The kernel waits for the host, which a busy machine may keep waiting.
    patient = {"BASCULE_EMULATED_SCHEDULE": "threads", "BASCULE_EMULATED_TIMEOUT": "100"}
    printed = printed_by("-c", PROGRAM + program, BASCULE_DEVICE="emulated", **patient)
    assert printed == "True True\nFalse True\n"
