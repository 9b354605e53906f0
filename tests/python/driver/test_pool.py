"""Point 10: arrays are made of stream-ordered memory of a pool of Bascule's own, and serialise with nothing."""

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
    print(waits() - before[0] - staging, calls("cuMemFreeAsync") > before[1])
    print([bool((a.copy_to_host() == np.arange(1000)).all()) for a in (y, z, w)])
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy) == "0 True\n[True, True, True]\n"


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


def test_memory_is_cached_until_it_is_trimmed():
    program = """
    x = bascule.device_array(1 << 20, "u1")
    del x
    bascule.synchronize()
    pool = bascule.memory_pool()
    print(pool.used_bytes, pool.reserved_bytes >= 1 << 20, pool.release_threshold == 2**64 - 1)
    pool.trim()
    print(pool.reserved_bytes)
    pool.release_threshold = 0
    x = bascule.device_array(1 << 20, "u1")
    bascule.synchronize()
    print(pool.used_bytes >= 1 << 20, pool.release_threshold)
    """
    assert prints(program) == "0 True True\n0\nTrue 0\n"


def test_a_device_without_pools_has_arrays_all_the_same():
    program = """
    x = bascule.to_device(np.arange(4))
    print(x.copy().copy_to_host(), calls("cuMemAllocFromPoolAsync"), calls("cuMemAlloc") > 0)
    pool = bascule.memory_pool()
    print(pool.used_bytes, pool.reserved_bytes)
    pool.trim()
    """
    assert prints(program, BASCULE_EMULATED_MEMORY_POOLS="0") == "[0 1 2 3] 0 True\n0 0\n"


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_memory_that_others_have_the_address_of_is_freed_behind_their_work(policy):
    """The consumer works on a stream of its own, and drops the array as soon as that is enqueued."""
    program = """
    import gc
    own = ctypes.c_void_p()
    bascule.synchronize()
    assert driver.cuStreamCreate(ctypes.byref(own), 1) == 0
    target = bascule.pinned_array(1 << 18, "u1")
    where = ctypes.c_void_p(target.__cuda_array_interface__["data"][0])
    def use(share):
        x = bascule.device_array(1 << 18, "u1")
        x.fill(7)
        bascule.synchronize()
        address = share(x)
        assert driver.cuMemcpyDtoHAsync_v2(where, ctypes.c_uint64(address), 1 << 18, own) == 0
    shares = [
        lambda x: x.__cuda_array_interface__["data"][0],
        lambda x: (x.__dlpack__(stream=own.value), x.__cuda_array_interface__["data"][0])[1],
        lambda x: x[10:].export(version=2).__cuda_array_interface__["data"][0] - 10,
    ]
    for share in shares:
        target[...] = 0
        for _ in range(300):
            use(share)
        before = calls("cuMemFree")
        assert driver.cuStreamSynchronize(own) == 0
        print(set(np.asarray(target)), before >= 256)
    bascule.memory_pool().trim()
    print(bascule.memory_pool().used_bytes)
    """
    expected = "{np.uint8(7)} True\n" * 3 + "0\n"
    assert prints(program, BASCULE_EMULATED_SCHEDULE=policy) == expected


def test_a_loop_of_shared_arrays_waits_once_for_many():
    program = """
    for _ in range(640):
        bascule.device_array(4, "f4").__cuda_array_interface__
    print(waits())
    """
    assert prints(program) == "20\n"  # an allocation and a free for 64 of them


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


@pytest.mark.parametrize("policy", ["eager", "lazy", "threads"])
def test_another_thread_frees_what_a_per_thread_default_stream_uses(policy):
    """Handle 2 is another stream there, which comes after nothing."""
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
    # And one of ours.
    g = bascule.Graph()
    with g:
        inside = bascule.device_array(32, "f4")
        inside.fill(1)
        kernel[1, 32](inside)
    g.launch()
    print(set(inside.copy_to_host()) == {2.0})
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="lazy") == "128\nTrue\n"  # x


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
