"""Launch attributes, occupancy, and parameters passed as bytes: the values, and refusals with the remedy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from conftest import traced

import bascule

SOURCE = """
__global__ void add(float* p, float value) { atomicAdd(p + threadIdx.x, value); }
__global__ __launch_bounds__(96) void bounded(float* p) { p[threadIdx.x] = 1; }
__global__ void shared(float* p) { __shared__ float s[10240]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads();
    p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; }
struct Opaque { int a[6]; long long b; };
struct alignas(64) Wide { unsigned long long words[16]; };
__global__ void take(Opaque o, long long* out) { out[threadIdx.x] = threadIdx.x < 6 ? o.a[threadIdx.x] : o.b; }
__global__ void take_wide(char first, const __grid_constant__ Wide w, unsigned long long* out) {
    out[threadIdx.x] = w.words[threadIdx.x] + first;
}
"""


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    return bascule.compile(SOURCE)


@pytest.fixture
def x() -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(64, "f4"))


def fitting(kernel: bascule.Kernel, block: int) -> int:
    return kernel.occupancy(block).blocks * bascule.current_device().multiprocessors


def test_a_cooperative_launch_may_have_as_many_blocks_as_fit(kernels, x):
    most = fitting(kernels.add, 64)
    kernels.add.launch(most, 64, (x, 1), cooperative=True)
    np.testing.assert_array_equal(x.copy_to_host(), np.full(64, most, "f4"))


def test_one_more_is_refused_before_anything_is_issued_with_how_many_fit(kernels, x):
    most = fitting(kernels.add, 64)
    kernels.add[1, 64](x, 0)
    with traced() as operations, pytest.raises(ValueError, match=f"{most} fit") as caught:
        kernels.add.launch(most + 1, 64, (x, 1), cooperative=True)
    assert operations == []
    assert "`grid`" in str(caught.value)
    assert f"all of its {most + 1} blocks" in str(caught.value)
    assert f"at most {most} blocks" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"), [({"cluster": 2}, "clusters of blocks"), ({"programmatic": True}, "programmatic dependent")]
)
def test_what_the_emulated_device_lacks_is_refused_with_what_to_do(kernels, x, emulated, options, said):
    with pytest.raises(NotImplementedError, match=said) as caught:
        kernels.add.launch(4, 64, (x, 1), **options)
    assert f"`{next(iter(options))}`" in str(caught.value)
    assert "BASCULE_DEVICE=cuda" in str(caught.value)


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), ((1, 0), 1), (1, (1, 1, 0))])
def test_a_configuration_of_nothing_is_refused_where_it_is_made(kernels, arguments):
    for make in (bascule.LaunchConfig, lambda *parts: kernels.add[parts]):
        with pytest.raises(ValueError, match=r"every extent is at least 1 (block|thread)\..*forall"):
            make(*arguments)
    with pytest.raises(ValueError, match="`cluster` is .* at least 1"):
        bascule.LaunchConfig(1, 1, cluster=0)


def test_a_cluster_that_does_not_divide_the_grid_is_refused(kernels, x):
    with pytest.raises(ValueError, match="multiple of the cluster"):
        kernels.add.launch((8, 3), 64, (x, 1), cluster=(2, 2))
    with pytest.raises(ValueError, match="at least 1"):
        kernels.add.launch(8, 64, (x, 1), cluster=(0, 1))


def test_a_cluster_of_one_block_is_none(kernels, x):
    kernels.add.launch(8, 64, (x, 1), cluster=(1, 1, 1))
    assert x.copy_to_host()[0] == 8


@pytest.mark.parametrize("priority", [0, -5])
def test_a_priority_in_the_devices_range_is_taken(kernels, x, emulated, priority):
    kernels.add.launch(8, 64, (x, 1), priority=priority)
    assert x.copy_to_host()[0] == 8


def test_another_priority_is_refused_with_the_range(kernels, x, emulated):
    with pytest.raises(ValueError, match=r"`priority` is -6: this device takes -5 \(most urgent\) to 0"):
        kernels.add.launch(8, 64, (x, 1), priority=-6)


@pytest.mark.parametrize("carveout", [0, 50, 100])
def test_a_carveout_is_a_percentage(kernels, x, carveout):
    kernels.add.launch(8, 64, (x, 1), shared_carveout=carveout)
    assert x.copy_to_host()[0] == 8


@pytest.mark.parametrize("carveout", [-1, 101])
def test_another_carveout_is_refused(kernels, x, carveout):
    with pytest.raises(ValueError, match="percentage"):
        kernels.add.launch(8, 64, (x, 1), shared_carveout=carveout)


def test_a_configuration_is_a_value_that_launches(kernels, x):
    config = bascule.LaunchConfig(4, 64, cooperative=True, priority=0, shared_carveout=25)
    same = eval(repr(config), {"bascule": bascule})
    assert (same, hash(same)) == (config, hash(config))
    assert config != bascule.LaunchConfig(4, 64, cooperative=True, priority=0)
    assert (config.cluster, config.programmatic, config.priority, config.shared_carveout) == ((1, 1, 1), False, 0, 25)
    stream = bascule.stream()
    kernels.add[config](x, 1)
    bascule.synchronize()
    kernels.add[config, stream](x, 1)
    bound = kernels.add[config].bind(x, 1)
    stream.synchronize()
    bound()
    bascule.synchronize()
    assert x.copy_to_host()[0] == 12


def test_more_threads_than_the_text_declares_are_refused_with_the_declaration(kernels, x):
    with pytest.raises(ValueError, match=r"__launch_bounds__\(96\)") as caught:
        kernels.bounded[1, 128](x)
    assert "`block` is (128,)" in str(caught.value)
    kernels.bounded[1, 64](x)


def test_more_threads_than_registers_serve_are_refused_with_the_registers():
    """Each thread needs more than 64 of the block's 65,536 registers: 1,024 threads do not fit."""
    names = ", ".join(f"v{i} = p[{i} * 1024 + threadIdx.x]" for i in range(220))
    uses = " + ".join(f"v{i} * q[v{(i * 7) % 220} & 1 ? {i} : 0]" for i in range(220))
    many = bascule.compile(
        f"__global__ void many(const volatile int* p, const volatile int* q, int* out) {{ int {names}; "
        f"out[threadIdx.x] = {uses}; }}"
    ).many
    if many.attributes.max_threads_per_block == 1024:
        pytest.skip("this device's compiler keeps the kernel in fewer registers")
    out = bascule.to_device(np.zeros(1024, "i4"))
    with pytest.raises(ValueError, match="registers") as caught:
        many[1, 1024](out, out, out)
    assert f"each thread uses {many.attributes.registers} registers" in str(caught.value)
    assert "max_registers=64" in str(caught.value)


def test_attributes_are_what_the_text_says_and_do_not_change(kernels):
    attributes = kernels.shared.attributes
    assert attributes.static_shared_bytes == 40960
    assert kernels.bounded.attributes.max_threads_per_block == 96
    assert 0 < attributes.registers <= 255
    assert attributes.ptx_version >= 75
    assert attributes == kernels.shared.attributes
    assert repr(attributes).startswith(f"KernelAttributes(registers={attributes.registers}, static_shared_bytes=40960")
    with pytest.raises(AttributeError):
        attributes.registers = 1


@pytest.mark.parametrize(("block", "shared_bytes"), [(32, 0), (256, 0), ((16, 16), 0), (1024, 0), (128, 40000)])
def test_occupancy_is_what_threads_blocks_and_shared_memory_allow(kernels, emulated, block, shared_bytes):
    """Compute capability 8.0 has 2,048 threads, 32 blocks and 164 KiB per SM; registers limit nothing here."""
    threads = int(np.prod(block))
    occupancy = kernels.add.occupancy(block, shared_bytes)
    by_shared = 164 * 1024 // (shared_bytes + 1024)
    expected = min(32, 2048 // threads, by_shared)
    assert occupancy.blocks == expected
    assert occupancy.ratio == expected * threads / 2048
    assert occupancy.grid == expected * bascule.current_device().multiprocessors
    assert repr(occupancy) == f"Occupancy(blocks={expected}, ratio={occupancy.ratio:g}, grid={occupancy.grid})"


def test_a_block_that_cannot_be_has_no_occupancy(kernels):
    with pytest.raises(ValueError, match="block"):
        kernels.bounded.occupancy(128)


def test_the_best_block_has_the_most_active_warps(kernels):
    for kernel, shared_bytes in ((kernels.add, 0), (kernels.bounded, 0), (kernels.shared, 0), (kernels.add, 30000)):
        best = kernel.best_block(shared_bytes)
        sizes = range(32, kernel.attributes.max_threads_per_block + 1, 32)
        most = max(kernel.occupancy(size, shared_bytes).ratio for size in sizes)
        assert kernel.occupancy(best, shared_bytes).ratio == most


@pytest.mark.parametrize("limit", [32, 100, 256, 2000])
def test_the_best_block_up_to_a_limit(kernels, limit):
    best = kernels.add.best_block(limit=limit)
    assert best <= limit
    sizes = range(32, min(limit, 1024) + 1, 32)
    assert kernels.add.occupancy(best).ratio == max(kernels.add.occupancy(size).ratio for size in sizes)


@pytest.mark.parametrize("limit", [None, 96, 277])
def test_the_best_block_where_shared_memory_depends_on_it(kernels, limit):
    """A block of more than 256 threads takes all the shared memory of a multiprocessor, so that only one fits."""
    most = ctypes.c_int()
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    assert driver.cuDeviceGetAttribute(ctypes.byref(most), 97, 0) == 0  # MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

    def shared_bytes(threads):
        return 1_000 if threads <= 256 else most.value

    best = kernels.add.best_block(shared_bytes, limit=limit)
    sizes = {*range(32, (limit or 1024) + 1, 32), limit or 1024}
    warps = {size: kernels.add.occupancy(size, shared_bytes(size)).ratio for size in sizes}
    assert warps[best] == max(warps.values())
    assert kernels.add.best_block() > 256
    if kernels.add.occupancy(256).blocks * 256 > 1024:  # else one block of 1024 threads fills the multiprocessor, too
        assert best <= 256


def test_errors_of_a_function_of_shared_memory_are_its_own(kernels):
    with pytest.raises(ZeroDivisionError):
        kernels.add.best_block(lambda threads: threads // (threads - threads))
    with pytest.raises(ValueError, match="shared"):
        kernels.add.best_block(lambda threads: 1 << 20)
    for wrong in (-1, 1.5, 1 << 40, None, "none"):
        with pytest.raises(ValueError, match=rf"an int from 0 on; for 3 threads it gives {wrong!r}\."):
            kernels.add.best_block(lambda threads, wrong=wrong: wrong if threads == 3 else 0)


def test_a_limit_of_no_threads_is_refused(kernels):
    with pytest.raises(ValueError, match="`limit` is at least one thread"):
        kernels.add.best_block(limit=0)


@pytest.mark.parametrize(("blocks", "block"), [(1, 64), (2, 256), (7, (16, 8)), (32, 64)])
def test_the_most_shared_memory_with_which_so_many_blocks_run_at_once(kernels, emulated, blocks, block):
    """Compute capability 8.0 has 164 KiB per SM. A block requests at most 163 KiB, and takes 1 KiB more."""
    most = kernels.add.shared_bytes_for(blocks, block)
    assert most == min(164 * 1024 // blocks // 128 * 128 - 1024, kernels.add.attributes.max_dynamic_shared_bytes)
    assert kernels.add.occupancy(block, most).blocks >= blocks
    if most < kernels.add.attributes.max_dynamic_shared_bytes:
        assert kernels.add.occupancy(block, most + 1).blocks < blocks


def test_static_memory_counts(kernels, emulated):
    static = kernels.shared.attributes.static_shared_bytes
    assert kernels.shared.shared_bytes_for(2, 64) == 164 * 1024 // 2 - 1024 - static


@pytest.mark.parametrize(("blocks", "block"), [(33, 64), (3, 1024), (0, 64)])
def test_more_blocks_than_run_at_once_have_no_shared_memory(kernels, emulated, blocks, block):
    assert kernels.add.shared_bytes_for(blocks, block) == 0


@pytest.mark.parametrize("preference", ["shared", "l1", "equal", "none", None])
def test_a_cache_preference_is_a_hint(kernels, x, preference):
    kernels.add.set_cache_preference(preference)
    kernels.add[1, 64](x, 2)
    np.testing.assert_array_equal(x.copy_to_host(), np.full(64, 2, "f4"))


def test_another_cache_preference_is_refused(kernels):
    with pytest.raises(ValueError, match="`preference` is \"shared\".*got 'L2'"):
        kernels.add.set_cache_preference("L2")


def test_attributes_of_clusters_and_caches(kernels):
    attributes = kernels.add.attributes
    assert (attributes.cluster, attributes.needs_cluster, attributes.non_portable_cluster) == (None, False, False)
    assert attributes.caches_globals_in_l1 in (False, True)
    assert "cluster=None" in repr(attributes)


def test_where_parameters_lie():
    """Parameter offsets follow the C++ rules for the members of a struct, as in NumPy with align=True."""
    kernel = bascule.compile(
        "struct P { double a; char b; };\n"
        "__global__ void k(char a, double b, short c, int* d, char e, float4 f, P p, bool g) {}"
    ).k
    like = np.dtype(
        [("a", "i1"), ("b", "f8"), ("c", "i2"), ("d", "u8"), ("e", "i1"), ("pad", "V15"), ("f", "V16"), ("p", "f8", 2)],
        align=True,
    )
    expected = [(like.fields[name][1], like.fields[name][0].itemsize) for name in "abcdefp"]
    assert kernel.parameter_layout == [*expected, (expected[-1][0] + 16, 1)]
    template = bascule.compile("template <class T> __global__ void t(T* x) {}").t
    with pytest.raises(bascule.ArgumentTypeError, match="is a template"):
        template.parameter_layout  # noqa: B018


OPAQUE = np.dtype({"names": ["a", "b"], "formats": [("<i4", 6), "<i8"], "offsets": [0, 24], "itemsize": 32})


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, "void", "array", bascule.raw_bytes])
def test_opaque_parameters_are_passed_by_exactly_their_bytes(kernels, form):
    record = np.zeros((), OPAQUE)
    record["a"], record["b"] = np.arange(10, 16), -(1 << 40)
    plain = record.tobytes()
    given = {"void": np.void(plain), "array": bascule.raw_bytes(np.frombuffer(plain, "u1"))}.get(form)
    out = bascule.to_device(np.zeros(7, "i8"))
    kernels.take[1, 7](form(plain) if given is None else given, out)
    np.testing.assert_array_equal(out.copy_to_host(), [10, 11, 12, 13, 14, 15, -(1 << 40)])


@pytest.mark.parametrize("size", [0, 31, 33, 128])
def test_another_number_of_bytes_is_refused_with_the_number_needed(kernels, size):
    out = bascule.to_device(np.zeros(7, "i8"))
    with pytest.raises((TypeError, ValueError), match="32 bytes") as caught:
        kernels.take[1, 7](bascule.raw_bytes(bytes(size)), out)
    assert f"{size}" in str(caught.value)
    assert "argument 1 'o'" in str(caught.value)


def test_a_parameter_of_128_bytes_aligned_to_64_is_passed_where_it_belongs(kernels, rng):
    """The parameter is like a CUtensorMap: 128 bytes, aligned to 64, passed as a grid constant."""
    words = rng.integers(0, 1 << 60, 16, dtype="u8")
    out = bascule.to_device(np.zeros(16, "u8"))
    kernels.take_wide[1, 16](3, bascule.raw_bytes(words), out)
    np.testing.assert_array_equal(out.copy_to_host(), words + 3)
