"""Ctrl-C ends a wait for a GPU, but not the work, which can be waited for again."""

from __future__ import annotations

import pytest

from .place import prints

PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background
kernel = bascule.compile(
    "__global__ void spin(int* flag, int* out) { while (*(volatile int*)flag == 0) {} *out += 1; }").spin
flag = bascule.pinned_array(1, "i4")
host = np.asarray(flag)
host[0] = 0
stream = bascule.stream()
out = bascule.to_device(np.zeros(1, "i4"), stream=stream)
large = bascule.zeros(1 << 21, "u1", stream=stream)
image = bascule.cuda_array(np.zeros((64, 64), "f4"), stream=stream)
of_large, of_image = np.ones(1 << 21, "u1"), np.ones((64, 64), "f4")
kernel.prepare(flag, out)
bascule.synchronize()
kernel[1, 1, stream](flag, out)
event = bascule.event()
event.record(stream)
main = threading.main_thread().ident

def wait():
    WAIT

def interrupt():
    # Once the main thread is in `wait`; a signal that comes early is raised there too.
    while sys._current_frames()[main].f_code is not wait.__code__:
        time.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)

thread = threading.Thread(target=interrupt)
thread.start()
try:
    wait()
except KeyboardInterrupt:
    print("interrupted")
thread.join()
host[0] = 1
wait()
print(out.copy_to_host())
"""
WAITS = ["bascule.synchronize()", "stream.synchronize()", "event.synchronize()", "out.copy_to_host()", "out.item()"]
WAITS += ["large.copy_to_host()", "large.copy_from_host(of_large)"]
WAITS += ["image.copy_to_host()", "image.copy_from(of_image)"]


@pytest.mark.parametrize("wait", WAITS)
def test_a_signal_ends_a_wait_for_a_kernel_that_spins(wait):
    program = PROGRAM.replace("WAIT", wait)
    printed = prints(program, BASCULE_EMULATED_SCHEDULE="threads", BASCULE_EMULATED_TIMEOUT="inf")
    assert printed == "interrupted\n[1]\n"


def test_a_handler_that_raises_nothing_does_not_end_the_wait():
    program = PROGRAM.replace("WAIT", "stream.synchronize()").replace(
        "thread = ", "signal.signal(signal.SIGINT, lambda *_: host.__setitem__(0, 1))\nthread = "
    )
    printed = prints(program, BASCULE_EMULATED_SCHEDULE="threads", BASCULE_EMULATED_TIMEOUT="inf")
    assert printed == "[1]\n"


def test_other_threads_wait_in_the_driver():
    """Python runs signal handlers only in its main thread."""
    program = """
    driver.bascule_emulated_call_count.restype = ctypes.c_uint64
    x = bascule.to_device(np.zeros(4))
    queries = lambda: driver.bascule_emulated_call_count(b"cuStreamQuery")
    stream = bascule.stream()
    stream.synchronize()
    counts = [queries()]
    thread = threading.Thread(target=stream.synchronize); thread.start(); thread.join()
    counts.append(queries())
    stream.synchronize()
    counts.append(queries())
    print(counts[1] - counts[0], counts[2] - counts[1])
    """
    assert prints(program) == "0 1\n"


def test_a_copy_to_the_host_waits_once():
    """A driver waits inside a copy to pageable memory, where no signal can end it, so the copy comes after the wait.

    The copy finds the stream idle.
    """
    program = """
    x = bascule.zeros(4, "u1", stream=bascule.stream())
    x.copy_to_host()
    count = bascule._bascule._driver_calls
    names = ["cuStreamQuery", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuCtxSynchronize"]
    before = [count(name) for name in names]
    copied = x.copy_to_host()
    print([count(name) - then for name, then in zip(names, before)], copied)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="eager") == "[2, 1, 1, 0] [0 0 0 0]\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_a_wait_for_an_idle_device_needs_no_other_thread(policy):
    """An event of the whole context marks the end, if the driver has such events (CUDA 12.5)."""
    program = """
    calls = bascule._bascule._driver_calls
    foreign = ctypes.c_void_p()
    x = bascule.to_device(np.arange(1 << 16, dtype="i4"))
    assert driver.cuStreamCreate(ctypes.byref(foreign), 1) == 0  # a non-blocking stream that Bascule never sees
    host = bascule.pinned_array(1 << 16, "i4")
    where = ctypes.c_void_p(host.__cuda_array_interface__["data"][0])
    address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
    bascule.synchronize()
    threads = len(os.listdir("/proc/self/task"))
    before = calls("cuCtxRecordEvent"), calls("cuCtxSynchronize")
    for _ in range(8):
        np.asarray(host)[:] = 0
        assert driver.cuMemcpyDtoHAsync_v2(where, address, 1 << 18, foreign) == 0
        bascule.synchronize()
        print((np.asarray(host) == np.arange(1 << 16)).all(), end=" ")
    print(len(os.listdir("/proc/self/task")) - threads)
    print(calls("cuCtxRecordEvent") - before[0], calls("cuCtxSynchronize") - before[1])
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy) == "True " * 8 + "0\n8 8\n"


FULL_QUEUE = """
import collections, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background
kernels = bascule.compile('''
    __global__ void spin(int* flag) { while (*(volatile int*)flag == 0) {} }
    __global__ void add(int* out) { *out += 1; }''')
spin, add = kernels.spin, kernels.add
flag = bascule.pinned_array(1, "i4")
host = np.asarray(flag)
host[0] = 0
stream = bascule.stream()
out, other = (bascule.to_device(np.zeros(1, "i4"), stream=stream) for _ in range(2))
bound = add[1, 1, stream].bind(out)
foreign_stream = ctypes.c_void_p()
driver.cuStreamCreate(ctypes.byref(foreign_stream), 1)
foreign = bascule.external_stream(foreign_stream.value)
spin.prepare(flag)
with bascule.Graph() as graph:
    for _ in range(NODES):
        add[1, 1](out)
graph.launch(stream)
bascule.synchronize()
spin[1, 1, stream](flag)
spin[1, 1, foreign](flag)
done = 0

def fill_the_queue():
    global done
    while True:
        OPERATION
        done += 1

def interrupt():
    # Once the main thread gets no further.
    seen = None
    while seen != done:
        seen = done
        time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

for _ in range(3):
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        fill_the_queue()
    except KeyboardInterrupt:
        print("interrupted")
    thread.join()
host[0] = 1
bascule.synchronize()
"""
OPERATIONS = ["add[1, 1, stream](out)", "bound()", "graph.launch(stream)", "out.fill(1)", "out[:] = other"]
OPERATIONS += ["add[1, 1, foreign](out)", "collections.deque(map(add[1, 1, stream], [out] * 10_000), 0)"]
OPERATIONS += ["out.copy_from_host(np.ones(1, 'i4'))", "out.copy()"]


@pytest.mark.parametrize(("operation", "nodes"), [*((each, 1) for each in OPERATIONS), ("graph.launch(stream)", 100)])
def test_a_signal_ends_a_wait_for_room_in_the_queue_of_a_stream(operation, nodes):
    """A driver waits inside the call that finds its queue full, where no signal can end it, so Bascule waits before."""
    program = FULL_QUEUE.replace("OPERATION", operation).replace("NODES", str(nodes))
    limits = {"BASCULE_EMULATED_SCHEDULE": "threads", "BASCULE_EMULATED_TIMEOUT": "inf"}
    assert prints(program, timeout=60, **limits) == "interrupted\n" * 3
