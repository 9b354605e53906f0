"""`get_global`: variables of device code as arrays, compared with NumPy."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import bascule

TEXT = """
struct Particle { float position[3]; int id; double charge; };
__constant__ float table[4][8];
__device__ int counter = 41;
__device__ Particle particles[6];
__device__ float4 vectors[5];
__device__ const int fixed[2] = {7, 8};
__device__ float* where;
namespace physics { __constant__ double gravity = 9.81; }

__global__ void gather(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[i % 4][i % 8] * static_cast<float>(physics::gravity);
}
__global__ void count() { atomicAdd(&counter, 1); }
__global__ void move(int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    for (int d = 0; d < 3; ++d) particles[i].position[d] *= 2;
    particles[i].id += fixed[1];
    particles[i].charge = -particles[i].charge;
    if (i < 5) vectors[i].w = vectors[i].x + vectors[i].y + vectors[i].z;
    if (where) where[i] = i;
}
"""
PARTICLE = np.dtype([("position", "f4", 3), ("id", "i4"), ("charge", "f8")], align=True)


@pytest.fixture
def module():
    return bascule.compile(TEXT)


def test_a_constant_table_is_written_from_the_host_and_read_by_a_kernel(module, rng):
    table = module.get_global("table")
    assert (table.shape, table.dtype, table.readonly) == ((4, 8), np.float32, False)
    values = rng.standard_normal((4, 8)).astype("f4")
    table.copy_from_host(values)
    out = bascule.to_device(np.full(1000, np.nan, "f4"))
    module.gather.forall(1000)(out, 1000)
    i = np.arange(1000)
    np.testing.assert_array_equal(out.copy_to_host(), values[i % 4, i % 8] * np.float32(9.81))
    np.testing.assert_array_equal(table.copy_to_host(), values)


def test_reads_and_writes_keep_the_order_of_the_stream(module):
    stream = bascule.stream()
    counter = module.get_global("counter")
    assert counter.copy_to_host() == 41
    seen = []
    for start in (100, 200, 300):
        counter.copy_from_host(start, stream=stream)
        module.count[1, 32, stream]()
        seen.append(int(counter.copy_to_host(stream=stream)))
        module.count[1, 1, stream]()
    assert seen == [132, 232, 332]
    assert counter.copy_to_host(stream=stream) == 333


def test_the_host_may_change_its_values_as_soon_as_they_are_copied(module):
    table, values = module.get_global("table"), np.ones((4, 8), "f4")
    table.copy_from_host(values)
    values[:] = -1
    np.testing.assert_array_equal(table.copy_to_host(), np.ones((4, 8), "f4"))


def test_structs_are_bytes_that_a_numpy_dtype_reads(module, rng):
    particles = module.get_global("particles")
    assert (particles.shape, particles.dtype) == ((6,), np.dtype("V24"))
    assert particles.dtype.itemsize == PARTICLE.itemsize
    host = np.zeros(6, PARTICLE)
    host["position"] = rng.standard_normal((6, 3))
    host["id"] = rng.integers(-1000, 1000, 6)
    host["charge"] = rng.standard_normal(6)
    particles.copy_from_host(host.view("V24"))
    module.move[1, 32](6)
    moved = particles.copy_to_host().view(PARTICLE)
    np.testing.assert_array_equal(moved["position"], host["position"] * 2)
    np.testing.assert_array_equal(moved["id"], host["id"] + 8)
    np.testing.assert_array_equal(moved["charge"], -host["charge"])


NAMELESS = """
namespace app { __constant__ struct { float a, b; int n; } cfg; }
__device__ struct { double d; char c; } pairs[3];
__device__ const union { int i; float f; } fixed = {7};
__device__ struct { float a, b; int n; } state;
__global__ void use(float* out) {
    out[0] = app::cfg.a + app::cfg.b * app::cfg.n;
    out[1] = state.a + state.b * state.n;
    pairs[1].d = fixed.i;
}
"""
CONFIG = np.dtype([("a", "f4"), ("b", "f4"), ("n", "i4")])


@pytest.fixture
def nameless():
    """Two variables whose types have no names, and a function that returns a kernel's results from their values."""
    kernel = bascule.compile(NAMELESS).use
    out = bascule.to_device(np.zeros(2, "f4"))

    def used() -> list[float]:
        kernel[1, 1](out)
        return out.copy_to_host().tolist()

    return kernel.get_global("cfg"), kernel.get_global("state"), used


def test_a_variable_whose_type_has_no_name_is_its_bytes():
    kernel = bascule.compile(NAMELESS).use
    cfg, pairs, fixed = (kernel.get_global(name) for name in ("app::cfg", "pairs", "fixed"))
    assert (cfg.shape, cfg.dtype, cfg.readonly) == ((), np.dtype("V12"), False)
    assert (pairs.shape, pairs.dtype) == ((3,), np.dtype("V16"))
    assert (fixed.shape, fixed.dtype, fixed.readonly) == ((), np.dtype("V4"), True)
    assert fixed.copy_to_host().view("i4") == 7


VALUE = np.array((1, 2.5, 4), CONFIG)


@pytest.mark.parametrize(
    "value",
    [VALUE[()], VALUE, VALUE.view("V12"), VALUE.tobytes(), bytearray(VALUE.tobytes()), memoryview(VALUE.tobytes())],
    ids=["structured scalar", "structured array", "opaque array", "bytes", "bytearray", "memoryview"],
)
def test_opaque_bytes_are_written_from_a_structured_value_or_bytes_of_their_size(nameless, value):
    cfg, state, used = nameless
    cfg.copy_from_host(value)
    state[...] = value
    assert used() == [11, 11]
    assert cfg.copy_to_host().view(CONFIG) == VALUE


@pytest.mark.parametrize(
    "value",
    [bytes(11), bytes(13), b"", np.zeros((), "f8,f8")[()], np.zeros((), "f8,f8"), np.zeros((), "f4")],
    ids=["11 bytes", "13 bytes", "no bytes", "structured scalar", "structured array", "float"],
)
def test_what_has_another_size_than_opaque_bytes_is_refused_and_nothing_is_written(nameless, value):
    cfg, state, used = nameless
    cfg.copy_from_host(VALUE)
    state.copy_from_host(VALUE)
    with pytest.raises((ValueError, TypeError)):
        cfg.copy_from_host(value)
    with pytest.raises((ValueError, TypeError)):
        state[...] = value
    assert used() == [11, 11]


def test_an_array_of_structs_is_written_from_a_structured_array(module, rng):
    particles = module.get_global("particles")
    host = np.zeros(6, PARTICLE)
    host["charge"] = rng.standard_normal(6)
    particles.copy_from_host(host)
    np.testing.assert_array_equal(particles.copy_to_host().view(PARTICLE), host)
    particles.copy_from_host(host[::-1].tobytes())
    np.testing.assert_array_equal(particles.copy_to_host().view(PARTICLE), host[::-1])


def test_vectors_are_arrays_of_their_numbers(module):
    vectors = module.get_global("vectors")
    assert (vectors.shape, vectors.dtype) == ((5, 4), np.float32)
    values = np.arange(20, dtype="f4").reshape(5, 4)
    vectors.copy_from_host(values)
    module.move[1, 32](6)
    values[:, 3] = values[:, :3].sum(axis=1)
    np.testing.assert_array_equal(vectors.copy_to_host(), values)


HALVES = """
#include <cuda_fp16.h>
__device__ __half halves[3];
__global__ void write() { halves[threadIdx.x] = __float2half(0.5f + threadIdx.x); }
"""
PHASES = """
#include <cuda/std/complex>
__device__ cuda::std::complex<float> phases[2];
__global__ void write() { phases[threadIdx.x] = cuda::std::complex<float>(threadIdx.x, -1); }
"""


def test_halves_and_complex_numbers_are_arrays_too():
    halves_of, phases_of = (bascule.compile(text).write for text in (HALVES, PHASES))
    halves, phases = halves_of.get_global("halves"), phases_of.get_global("phases")
    assert (halves.shape, halves.dtype) == ((3,), np.float16)
    assert (phases.shape, phases.dtype) == ((2,), np.complex64)
    halves_of[1, 3]()
    phases_of[1, 2]()
    np.testing.assert_array_equal(halves.copy_to_host(), np.array([0.5, 1.5, 2.5], "f2"))
    np.testing.assert_array_equal(phases.copy_to_host(), np.array([-1j, 1 - 1j], "c8"))


def test_a_pointer_is_set_to_the_address_of_an_array(module):
    target = bascule.to_device(np.full(6, -1, "f4"))
    where = module.get_global("where")
    assert (where.shape, where.dtype) == ((), np.uint64)
    where.copy_from_host(target.__cuda_array_interface__["data"][0])
    module.move[1, 32](6)
    np.testing.assert_array_equal(target.copy_to_host(), np.arange(6, dtype="f4"))
    where.copy_from_host(0)


def test_a_const_variable_can_only_be_read(module):
    fixed = module.get_global("fixed")
    assert fixed.readonly
    np.testing.assert_array_equal(fixed.copy_to_host(), [7, 8])
    with pytest.raises(ValueError, match="read-only"):
        fixed.copy_from_host(np.zeros(2, "i4"))


CONSTANTS = """
struct Wide { char bytes[24]; };
__constant__ float table[4][8];
__constant__ char padding = 1;
__constant__ short odd[3][5];
__constant__ char letters[7];
__constant__ double2 pairs[6];
__constant__ Wide wide[4];
namespace { __constant__ double hidden = 1; }
__device__ const float* where = &table[0][0];
__device__ float plain[4];
__global__ void use(double* out) {
    *out = table[1][2] + padding + odd[0][1] + letters[2] + pairs[1].x + wide[2].bytes[1] + hidden
           + *where + plain[0];
}
__global__ void read(const float* from, float* out) { out[threadIdx.x] = from[threadIdx.x]; }
__global__ void write(float* target) { target[threadIdx.x] = 1; }
__global__ void view(bascule::array_view<float, 2> target) { target(0, 0) = 1; }
"""
WRITES = {
    "all": lambda x, value, other: x.__setitem__(..., value),
    "fill": lambda x, value, other: x.fill(value),
    "every other": lambda x, value, other: x.__setitem__((..., slice(None, None, 2)), value),
    "backwards": lambda x, value, other: x.__setitem__((..., slice(None, None, -2)), other[..., ::-2]),
    "another array": lambda x, value, other: x.__setitem__(..., other),
    "a strided array": lambda x, value, other: x.__setitem__(..., other[..., ::-1]),
    "its own elements": lambda x, value, other: x.__setitem__(..., x[..., ::-1]),
    "one": lambda x, value, other: x.__setitem__((*(0,) * (x.ndim - 1), 1), value),
    "a reshaped transposed view": lambda x, value, other: x.reshape(-1, 1).T.__setitem__((..., slice(1, 5)), value),
}


@pytest.fixture
def constants():
    return bascule.compile(CONSTANTS).use


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("table", "f4"), ("odd", "i2"), ("letters", "i1"), ("pairs", "f8"), ("wide", "V24")],
)
def test_elements_of_constant_memory_are_written_as_numpys_are(constants, rng, name, dtype, way):
    target = constants.get_global(name)
    assert target.dtype == np.dtype(dtype)
    assert not target.readonly
    size = target.nbytes
    expected, other = (rng.integers(0, 100, size, "u1").view(dtype).reshape(target.shape) for _ in range(2))
    target.copy_from_host(expected)
    value = rng.integers(1, 100, target.itemsize, "u1").view(dtype)[0]
    WRITES[way](expected, value, other) if way != "fill" else expected.__setitem__(..., value)
    stream = bascule.stream()
    with stream:
        WRITES[way](target, value, bascule.to_device(other))
        np.testing.assert_array_equal(target.copy_to_host().view("u1"), expected.view("u1"))


def test_one_constant_is_assigned_and_used_by_a_kernel(constants):
    hidden, padding = constants.get_global("hidden"), constants.get_global("padding")
    out = bascule.device_array(1, "f8")
    hidden[...] = 2.5
    padding.fill(3)
    constants[1, 1](out)
    assert out.copy_to_host() == 5.5


def test_values_from_the_host_go_to_strided_constant_memory(constants, rng):
    table, expected = constants.get_global("table"), np.zeros((4, 8), "f4")
    values = rng.standard_normal((4, 3)).astype("f4")
    table.fill(0)
    table[:, 1:7:2].copy_from_host(values)
    expected[:, 1:7:2] = values
    np.testing.assert_array_equal(table.copy_to_host(), expected)
    np.testing.assert_array_equal(table[::2, ::3].astype("i4").copy_to_host(), expected[::2, ::3].astype("i4"))


def test_writes_to_constant_memory_are_captured(constants):
    table, stream = constants.get_global("table"), bascule.stream()
    table.copy_from_host(np.zeros((4, 8), "f4"))
    table[:, ::2] = 1  # compiles what is captured
    bascule.synchronize()
    with bascule.Graph() as graph, graph.stream:
        table[:, ::2] = 7
    table.copy_from_host(np.full((4, 8), 3, "f4"), stream=stream)
    graph.launch(stream)
    expected = np.full((4, 8), 3, "f4")
    expected[:, ::2] = 7
    np.testing.assert_array_equal(table.copy_to_host(stream=stream), expected)


def test_a_kernel_that_could_write_constant_memory_is_refused_before_it_is_launched():
    module = bascule.compile(CONSTANTS)
    table, out = module.get_global("table"), bascule.device_array(8, "f4")
    for kernel, parameter in ((module.write, "float*"), (module.view, "bascule::array_view<float, 2>")):
        for array in (table, table[1:]):
            with pytest.raises(ValueError, match="argument 1 'target'.*in constant memory.*const") as caught:
                kernel[1, 8](array)
            assert parameter in str(caught.value)
    table.copy_from_host(np.arange(32, dtype="f4").reshape(4, 8))
    module.read[1, 8](table[1], out)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(8, 16))
    module.write[1, 4](module.get_global("plain"))
    assert (module.get_global("plain").copy_to_host() == 1).all()


def test_other_libraries_get_constant_memory_read_only(constants):
    table = constants.get_global("table")
    assert table.__cuda_array_interface__["data"][1]
    assert bascule.as_cuda_array(table).readonly
    assert bascule.from_dlpack(table).readonly
    with pytest.raises(BufferError, match="read-only"):
        table.__dlpack__()
    assert not constants.get_global("where").__cuda_array_interface__["data"][1]


def test_values_of_another_shape_or_type_are_refused_and_nothing_is_written(module):
    table = module.get_global("table")
    before = table.copy_to_host()
    for wrong in (np.zeros((4, 8)), np.zeros((8, 4), "f4"), np.zeros(32, "f4"), 1.0):
        with pytest.raises(
            ValueError, match=r"`values` must have shape \(4, 8\) and dtype float32.*(astype|broadcast_to)"
        ):
            table.copy_from_host(wrong)
    np.testing.assert_array_equal(table.copy_to_host(), before)


def test_the_array_is_what_kernels_and_other_libraries_take(module):
    counter = module.get_global("counter")
    add = bascule.compile("__global__ void add(int* p, int by) { *p += by; }").add
    before = int(counter.copy_to_host())
    add[1, 1](counter, 5)
    assert counter.copy_to_host() == before + 5
    viewed = bascule.as_cuda_array(counter)
    assert viewed.copy_to_host() == before + 5


def test_the_variable_outlives_the_module_while_its_array_lives():
    module = bascule.compile("__device__ int only_here[3] = {1, 2, 3}; __global__ void k() { only_here[0] = 4; }")
    array = module.get_global("only_here")
    del module
    bascule.cache.clear()
    gc.collect()
    np.testing.assert_array_equal(array.copy_to_host(), [1, 2, 3])


def test_kernels_of_one_text_share_a_variable_and_modules_do_not(module):
    address = module.get_global("counter").__cuda_array_interface__["data"][0]
    assert module.count.get_global("counter").__cuda_array_interface__["data"][0] == address
    assert module.gather.get_global("counter").__cuda_array_interface__["data"][0] == address
    other = bascule.compile(TEXT).get_global("counter")
    assert other.__cuda_array_interface__["data"][0] != address


def test_a_name_is_qualified_or_unique(module):
    assert module.get_global("gravity").copy_to_host() == 9.81
    assert module.get_global("physics::gravity").copy_to_host() == 9.81


def test_a_name_that_is_not_there_is_answered_with_the_nearest(module):
    with pytest.raises(bascule.CompileError, match=r"variable 'tabel'\. Did you mean 'table'\? Its variables: table,"):
        module.get_global("tabel")
    with pytest.raises(bascule.CompileError, match="'count' of .* cannot be read or written as a variable"):
        module.get_global("count")


def test_a_variable_is_compiled_for_once():
    kernel = bascule.compile("__device__ int once_only; __global__ void k() { once_only = 1; }").k
    kernel.prepare()
    kernel.get_global("once_only")
    compiled = bascule.cache.stats().compiled
    kernel.get_global("once_only")
    assert bascule.cache.stats().compiled == compiled
