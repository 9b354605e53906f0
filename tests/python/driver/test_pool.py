"""Arrays use stream-ordered memory of Bascule's own pool, and do not serialise other work."""

from __future__ import annotations

import textwrap

import pytest

from .place import prints as prints_on_driver

COUNTING = """
bascule.device_array(1, "f4")  # from now on the thread has a context
driver.bascule_emulated_implicit_synchronizations.restype = ctypes.c_uint64
driver.bascule_emulated_call_count.restype = ctypes.c_uint64
waits = driver.bascule_emulated_implicit_synchronizations
def calls(name): return driver.bascule_emulated_call_count(name.encode())
"""


def prints(program: str, **changes: str) -> str:
    return prints_on_driver(COUNTING + textwrap.dedent(program), **changes)


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
@pytest.mark.parametrize("bound", ["None", "bascule.stream()", "bascule.per_thread_default_stream()"])
def test_a_loop_of_copies_and_conversions_serialises_with_nothing(policy, bound):
    program = f"""
    stream = {bound}
    x = bascule.to_device(np.arange(1000, dtype="f4"), stream=stream)
    host = np.arange(1000, dtype="f8")
    x.astype("i4")  # compiles
    for _ in range(200):  # as many staging buffers as can be pending below
        bascule.to_device(host, stream=stream)
    bascule.synchronize()
    before = waits(), calls("cuMemFreeAsync"), calls("cuMemHostAlloc")
    for _ in range(40):
        y = x.copy()
        z = x.astype("i4")
        w = bascule.to_device(host, stream=stream)
        e = bascule.device_array(1000, "f4", stream=stream)
    staging = calls("cuMemHostAlloc") - before[2]  # where threads were faster before: each waits
    print(waits() - before[0] - staging)
    print([bool((a.copy_to_host() == np.arange(1000)).all()) for a in (y, z, w)])
    bascule.synchronize()  # releases what operations kept until now, if the device was slow
    print(calls("cuMemFreeAsync") - before[1] >= 3 * 39)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy) == "0\n[True, True, True]\nTrue\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_every_stream_may_use_a_new_array_at_once(policy):
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] = 1; }").k
    for _ in range(20):
        x = bascule.device_array(32, "f4", stream=bascule.stream())
        other = bascule.stream()
        kernel[1, 32, other].options(sync=False)(x)
        other.synchronize()
        print(x.copy_to_host().sum())
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy, BASCULE_EMULATED_CHECKS="all") == "32.0\n" * 20


def test_memory_is_cached_for_the_next_arrays_and_trimmed_on_demand():
    program = """
    x = bascule.device_array(1 << 20, "u1")
    del x
    bascule.synchronize()
    pool = bascule.memory_pool()
    print(pool.used_bytes, pool.reserved_bytes >= 1 << 20)
    pool.trim()
    print(pool.reserved_bytes)
    pool.release_threshold = 0
    x = bascule.device_array(1 << 20, "u1")
    bascule.synchronize()
    print(pool.used_bytes >= 1 << 20, pool.release_threshold)
    del x
    bascule.synchronize(); bascule.synchronize()
    print(pool.reserved_bytes)
    """
    assert prints(program) == "0 True\n0\nTrue 0\n0\n"


RESERVED = """
pool = bascule.memory_pool()
def reserved(step, count):
    most = 0
    for _ in range(count):
        step()
        most = max(most, pool.reserved_bytes)
    return most >> 20
"""


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
@pytest.mark.parametrize("bound", ["None", "bascule.stream()"])
def test_a_loop_of_temporaries_reserves_what_lives_at_once(policy, bound):
    """If each result is dropped at once, two are alive: the new one and the one that it replaces."""
    program = f"""
    x = bascule.to_device(np.arange(1 << 20, dtype="f4"), stream={bound})
    kernel = bascule.compile("__global__ void k(const float* x, float* y) {{ y[threadIdx.x] = x[threadIdx.x]; }}").k
    other = bascule.stream()
    def convert(): x.astype("f8")
    def launch(): kernel[1, 32](x, bascule.device_array_like(x))
    def elsewhere(): kernel[1, 32, other](x, bascule.device_array_like(x))
    def copy(): x.copy().astype("i4").copy_from_host(np.zeros(1 << 20, "i4"))
    for step in convert, launch, elsewhere, copy:
        print(reserved(step, 80) <= 3 * 16 + 64)
    """
    assert prints(RESERVED + textwrap.dedent(program), BASCULE_EMULATED_SCHEDULE=policy) == "True\n" * 4


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_synchronising_returns_what_arrays_no_longer_use(policy):
    program = """
    arrays = [bascule.zeros(1 << 20, "f4") for _ in range(100)]
    bascule.synchronize()
    print(pool.reserved_bytes >> 20 >= 400)
    del arrays
    bascule.synchronize()
    print(pool.reserved_bytes >> 20 >= 400)  # for as many arrays as lived since the synchronisation before
    for _ in range(2): bascule.zeros(1 << 20, "f4"); bascule.synchronize()
    print(pool.reserved_bytes >> 20 <= 3 * 4 + 64, pool.release_threshold >> 20 <= 3 * 4 + 64)
    for _ in range(10):  # a program that needs as much at each step keeps it
        step = [bascule.zeros(1 << 20, "f4") for _ in range(100)]
        del step
        step = bascule.zeros(1)
        step.copy_to_host()
        print(end=str(int(pool.reserved_bytes >> 20 >= 400)))
    """
    expected = "True\nTrue\nTrue True\n1111111111"
    assert prints(RESERVED + textwrap.dedent(program), BASCULE_EMULATED_SCHEDULE=policy) == expected


def test_a_device_without_pools_has_arrays_all_the_same():
    program = """
    x = bascule.to_device(np.arange(4))
    print(x.copy().copy_to_host(), calls("cuMemAllocFromPoolAsync"), calls("cuMemAlloc") > 0)
    pool = bascule.memory_pool()
    print(pool.used_bytes, pool.reserved_bytes)
    pool.trim()
    """
    assert prints(program, BASCULE_EMULATED_MEMORY_POOLS="0") == "[0 1 2 3] 0 True\n0 0\n"


@pytest.mark.parametrize("waits", ["1", "0"])
@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_memory_that_others_have_the_address_of_is_freed_behind_their_work(policy, waits):
    """The consumer enqueues a copy on a blocking stream, or on the stream passed to the export, and drops the array.

    Whether cuMemFree waits is up to the driver.
    """
    program = """
    blocking = ctypes.c_void_p()
    bascule.synchronize()
    assert driver.cuStreamCreate(ctypes.byref(blocking), 0) == 0
    ours = bascule.stream()
    target = bascule.pinned_array(1 << 18, "u1")
    where = ctypes.c_void_p(target.__cuda_array_interface__["data"][0])
    kinds = {
        "default": lambda: bascule.device_array(1 << 18, "u1"),
        "stream": lambda: bascule.device_array(1 << 18, "u1", stream=bascule.stream()),
        "thread": lambda: bascule.device_array(1 << 18, "u1", stream=bascule.per_thread_default_stream()),
        "managed": lambda: bascule.managed_array(1 << 18, "u1"),
    }
    shares = [
        (blocking.value, lambda x: x.__cuda_array_interface__["data"][0]),
        (ours.handle, lambda x: (x.__dlpack__(stream=ours), x.__cuda_array_interface__["data"][0])[1]),
        (blocking.value, lambda x: x[10:].export(version=2).__cuda_array_interface__["data"][0] - 10),
    ]
    def use(make, share, stream):
        x = make()
        x.fill(7)
        bascule.synchronize()
        address = share(x)
        assert driver.cuMemcpyAsync(where, ctypes.c_uint64(address), 1 << 18, ctypes.c_void_p(stream)) == 0
    for name, make in kinds.items():
        for stream, share in shares:
            target[...] = 0
            for _ in range(100):
                use(make, share, stream)
            assert driver.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0
            print(end=str(set(np.asarray(target)) == {7}) + " ")
    gc.collect(); bascule.memory_pool().trim()
    print(bascule.memory_pool().used_bytes)
    """
    changes = {"BASCULE_EMULATED_SCHEDULE": policy, "BASCULE_EMULATED_FREES_WAIT": waits}
    assert prints(program, **changes) == "True " * 12 + "0\n"


def test_a_loop_of_shared_arrays_waits_for_nothing():
    program = """
    flag = bascule.pinned_array(1, "i4"); flag[...] = 0
    kernel = bascule.compile("__global__ void k(volatile int* flag) { while (*flag == 0) {} }").k
    kernel.prepare(flag)
    x = bascule.device_array(32 << 20, "u1")
    before = waits()
    kernel[1, 1](flag)  # the device is busy
    for _ in range(200):
        bascule.device_array(4, "f4").__cuda_array_interface__
        bascule.device_array(4, "f4", stream=bascule.stream()).__cuda_array_interface__
    for _ in range(10):
        bascule.device_array(64 << 20, "u1").__cuda_array_interface__
    print(waits() - before)
    np.asarray(flag)[0] = 1
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="threads") == "0\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_an_array_may_outlive_a_stream_that_another_library_destroys(policy):
    program = """
    bascule.synchronize()
    foreign = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(foreign), 1) == 0
    arrays = [bascule.to_device(np.arange(4), stream=bascule.external_stream(foreign.value)) for _ in range(100)]
    assert driver.cuStreamDestroy_v2(foreign) == 0
    del arrays
    gc.collect(); bascule.memory_pool().trim()
    print(bascule.memory_pool().used_bytes)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy) == "0\n"


def test_owners_of_a_destroyed_stream_outlive_work_on_the_next_one_with_its_handle():
    """An H100's driver reuses most handles. The old stream's work may be pending when the new one's is done."""
    program = """
    import weakref
    flag = bascule.pinned_array(1, "i4"); seen = np.asarray(flag); seen[0] = 0
    kernels = bascule.compile('''
        __global__ void spin(volatile int* flag, float* p) { while (*flag == 0) {} p[0] = 1; }
        __global__ void k(float* p) { p[0] = 2; }
    ''')
    kernels.spin.prepare(); kernels.k.prepare()
    bascule.synchronize()
    class Owned(Foreign): pass
    def owned():
        owner = Owned(memory.__cuda_array_interface__["data"][0], 8)
        owner.memory = memory
        return owner
    def create():
        handle = ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
        return handle
    memory = bascule.zeros(8, "f4"); bascule.synchronize()
    def attempt():
        seen[0] = 0
        first = create()
        x = owned(); alive = weakref.ref(x)
        kernels.spin[1, 1, bascule.external_stream(first.value)](flag, x)
        del x
        assert driver.cuStreamDestroy_v2(first) == 0
        again = [handle for handle in [create() for _ in range(64)] if handle.value == first.value]
        outcome = None
        if again:
            later = bascule.external_stream(again[0].value)
            for _ in range(100): kernels.k[1, 1, later](owned())
            later.synchronize(); gc.collect()
            outcome = alive() is not None
        seen[0] = 1
        bascule.synchronize(); gc.collect()
        assert alive() is None
        return outcome
    outcomes = {attempt() for _ in range(20)}
    print(False in outcomes)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="threads") == "False\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
@pytest.mark.parametrize("busy", [False, True])
def test_nothing_asks_about_a_stream_that_another_library_has_destroyed(policy, busy):
    """On an H100 such a query crashes. Owners kept for the stream's work are released by events, or with the device."""
    program = f"""
    kernel = bascule.compile("__global__ void k(float* p) {{ p[threadIdx.x] += 1; }}").k
    x = bascule.zeros(32, "f4")
    bascule.synchronize()  # other streams may use it
    def foreign():
        handle = ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
        return handle
    for operations in (1, 63, 64, 100):
        handle = foreign()
        stream = bascule.external_stream(handle.value)
        for _ in range(operations):
            kernel[1, 32, stream](Foreign(x.__cuda_array_interface__["data"][0]))
            bascule.to_device(np.zeros(8), stream=stream)
        bound = kernel[1, 32, stream].bind(x)
        bound()
        if not {busy}:
            stream.synchronize()
        assert driver.cuStreamDestroy_v2(handle) == 0
        del bound, stream
        gc.collect()
        for _ in range(100):  # markers, on other streams
            kernel[1, 32](x)
        x.copy_to_host()
    bascule.memory_pool().trim()
    bascule.synchronize()
    print(bascule._bascule._owners_held())
    """
    options = {"BASCULE_EMULATED_STALE_STREAMS": "1", "BASCULE_EMULATED_SCHEDULE": policy}
    assert prints(program, **options) == "0\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_another_thread_frees_what_a_per_thread_default_stream_uses(policy):
    """In the thread that frees, handle 2 is another stream, not ordered with that of the thread that allocated."""
    program = """
    kept, results = [], []
    def work():
        x = bascule.to_device(np.arange(1 << 16, dtype="f4"), stream=bascule.per_thread_default_stream())
        y = x.copy()
        results.append(y.copy_to_host()[-1])
        kept.append([x, y, x.copy()])  # which is pending
    for _ in range(20):
        thread = threading.Thread(target=work); thread.start(); thread.join()
    kept.clear()
    bascule.memory_pool().trim()
    print(set(results) == {65535.0}, bascule.memory_pool().used_bytes)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy, BASCULE_EMULATED_CHECKS="all") == "True 0\n"


def test_arrays_made_and_dropped_in_a_capture_are_no_part_of_it():
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
    x = bascule.to_device(np.zeros(32, "f4"))
    kernel[1, 32](x)
    stream = bascule.stream()
    before_it = bascule.device_array(32, "f4", stream=stream)
    bascule.synchronize()
    # Another library captures our stream.
    handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(handle, 2) == 0
    del before_it
    made = bascule.device_array(32, "f4", stream=stream)
    del made
    assert driver.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0
    bascule.memory_pool().trim()
    print(bascule.memory_pool().used_bytes)
    # A graph of Bascule's.
    g = bascule.Graph()
    with g:
        inside = bascule.device_array(32, "f4")
        inside.fill(1)
        kernel[1, 32](inside)
    g.launch()
    print(set(inside.copy_to_host()) == {2.0})
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="lazy") == "128\nTrue\n"  # 128 bytes: x


def test_memory_that_launches_hold_makes_room_when_there_is_none_left():
    program = """
    kernel = bascule.compile("__global__ void k(unsigned char* p) { p[threadIdx.x] = 1; }").k
    for _ in range(50):
        kernel[1, 32](bascule.device_array(20 << 20, "u1"))
    try:
        bascule.device_array(65 << 20, "u1")
    except bascule.OutOfMemoryError as error:
        print("allocating 68157440 bytes of device memory" in str(error), "free" in str(error))
    """
    assert prints(program, BASCULE_EMULATED_MEMORY=str(64 << 20), BASCULE_EMULATED_SCHEDULE="lazy") == "True True\n"


def test_where_the_program_orders_streams_itself_memory_serves_all_of_them_at_once():
    program = """
    x = bascule.device_array(4, "f4")
    print(calls("cuMemAllocFromPoolAsync"))
    """
    assert prints(program, BASCULE_CUDA_ARRAY_INTERFACE_SYNC="0") == "0\n"


def test_arrays_at_the_end_of_the_program_and_in_a_forked_child_are_no_error():
    program = """
    x = bascule.device_array(1 << 20, "u1")
    y = bascule.device_array(1 << 20, "u1", stream=bascule.stream())
    z = bascule.device_array(4, "f4").__cuda_array_interface__ and bascule.device_array(4, "f4")
    import warnings; warnings.simplefilter("ignore")
    child = os.fork()
    if child == 0:
        del x, y, z
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    """
    assert prints(program) == "0\n"


def test_copies_behind_a_busy_kernel_wait_for_nothing_and_return_their_pinned_memory():
    """The kernel ends only after the host has made all its copies, so a copy that waits would hang."""
    program = """
    kernel = bascule.compile("__global__ void k(volatile int* flag) { while (*flag == 0) {} }").k
    flag = bascule.pinned_array(1, "i4")
    np.asarray(flag)[0] = 0
    stream = bascule.stream()
    x, host = bascule.device_array(1 << 20, "u1", stream=stream), np.zeros(1 << 20, "u1")
    small = x[: 1 << 18]
    kernel.prepare(flag)
    bascule.synchronize()
    def pinned(): return calls("cuMemHostAlloc") - calls("cuMemFreeHost")
    before = pinned()
    kernel[1, 1, stream](flag)
    for _ in range(100):
        x.copy_from_host(host)
        small.copy_from_host(host[: 1 << 18])
    pending = pinned() - before
    np.asarray(flag)[0] = 1
    bascule.synchronize()
    kept = pinned() - before
    for _ in range(8):
        small.copy_from_host(host[: 1 << 18])
        x.copy_from_host(host)
        stream.synchronize()
    print(pending, kept <= 128, pinned() - before == kept)  # 32 MiB or less
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="threads") == "200 True True\n"


def test_a_shareable_array_can_be_opened_by_other_processes_and_one_of_the_pool_cannot():
    """An H100 returns CUDA_ERROR_INVALID_VALUE from cuIpcGetMemHandle for memory of every pool, too."""
    program = """
    handle = (ctypes.c_char * 64)()
    for options in ({}, {"shareable": True}):
        x = bascule.device_array((16, 64), "f4", **options)
        x.fill(3)
        address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
        print(driver.cuIpcGetMemHandle(handle, address), set(x.copy_to_host().ravel()))
    """
    assert prints(program) == "1 {np.float32(3.0)}\n0 {np.float32(3.0)}\n"
