"""masked_view: which elements a kernel finds valid. numpy.ma and plain NumPy are the reference."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import traced

import bascule

from .arrays import Exposed, strided

SOURCE = r"""
using bascule::array_view;
using bascule::masked_view;
// What is invalid is not read: -1 stands for it.
__global__ void read1(masked_view<const float> x, array_view<float> out) {
    for (int i = threadIdx.x; i < out.size(); i += blockDim.x) out[i] = x.valid(i) ? x[i] : -1;
}
__global__ void read3(masked_view<const float, 3> x, array_view<float, 3> out) {
    const long long n = out.extent(1) * out.extent(2);
    for (long long at = threadIdx.x; at < out.size(); at += blockDim.x) {
        const long long i = at / n, j = at % n / out.extent(2), k = at % out.extent(2);
        out(i, j, k) = x.valid(i, j, k) ? x(i, j, k) : -1;
    }
}
__global__ void read0(masked_view<const float, 0> x, float* out) { *out = x.valid() ? x() : -1; }
__global__ void has_mask(masked_view<const float> x, int* out) { *out = x.masked(); }
__global__ void lanes(masked_view<const float4> x, array_view<float> out) {
    for (int i = threadIdx.x; i < out.size(); i += blockDim.x) out[i] = x.valid(i) ? x[i].x + x[i].w : -1;
}
__device__ float sum(array_view<const float> x) {
    float total = 0;
    for (int i = 0; i < x.size(); ++i) total += x[i];
    return total;
}
__device__ int count(masked_view<const float> x) {
    int total = 0;
    for (int i = 0; i < x.size(); ++i) total += x.valid(i);
    return total;
}
__global__ void convert(masked_view<float> x, float* out) { out[0] = sum(x); out[1] = count(x); }
__global__ void fill_invalid(masked_view<float> x, float value) {
    for (int i = threadIdx.x; i < x.size(); i += blockDim.x) if (!x.valid(i)) x[i] = value;
}
__global__ void pointer(const float* x, int* out) { *out = 1; }
__global__ void view(array_view<const float> x, int* out) { *out = 1; }
__global__ void set(unsigned char* mask, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) mask[i] = i % 3 == 0;
}
"""
TEMPLATES = r"""
template <typename T> __global__ void total(bascule::masked_view<const T> x, T* out) {
    T sum = 0;
    for (int i = 0; i < x.size(); ++i) if (x.valid(i)) sum += x[i];
    *out = sum;
}
template <typename T> __global__ void unmasked(const T* x, T* out) { *out = *x; }
__global__ void which(bascule::array_view<const float> x, int* out) { *out = 1; }
__global__ void which(bascule::masked_view<const float> x, int* out) { *out = 2; }
"""
MASK_DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    return bascule.compile(SOURCE)


def poisoned(shape, dtype="f4"):
    return bascule.to_device(np.full(shape, 77, dtype))


def random_mask(rng, shape, dtype):
    """About half of the elements are true, by a random bit each: comparing only the low byte would miss some."""
    mask = strided(rng, shape, dtype)
    ones = np.ones(shape, dtype) if dtype == "?" else (1 << rng.integers(0, 8 * mask.itemsize, shape)).astype(dtype)
    mask[...] = np.where(rng.integers(0, 2, shape), ones, 0)
    return mask


def bits(mask: np.ndarray, typestr: str = "<t1", **fields) -> Exposed:
    """One bit per element in C order, least significant first, as cuDF exports; the rest is poisoned."""
    packed = np.append(np.packbits(mask.ravel(), bitorder="little"), np.uint8(0xFF))
    return Exposed(packed, shape=mask.shape, strides=None, typestr=typestr, version=0, **fields)


def expected(values, mask):
    return np.where(mask, values, np.float32(-1))


@pytest.mark.parametrize("dtype", MASK_DTYPES)
def test_elements_are_valid_where_the_mask_is_not_zero(kernels, rng, dtype):
    for shape in [(1,), (33,), (97,)]:
        x = strided(rng, shape, "f4")
        mask = random_mask(rng, shape, dtype)
        out = poisoned(shape)
        kernels.read1[1, 32](Exposed(x, mask=Exposed(mask)), out)
        assert np.array_equal(out.copy_to_host(), expected(x, mask != 0))


@pytest.mark.parametrize("dtype", ["?", "i2", "u8"])
def test_masks_have_strides_of_their_own_and_broadcast(kernels, rng, dtype):
    shape = (3, 4, 5)
    for mask_shape in [(3, 4, 5), (1, 4, 5), (4, 1), (3, 1, 1), (5,), (1,), ()]:
        x = strided(rng, shape, "f4")
        mask = random_mask(rng, mask_shape, dtype)
        out = poisoned(shape)
        kernels.read3[1, 64](Exposed(x, mask=Exposed(mask)), out)
        assert np.array_equal(out.copy_to_host(), expected(x, np.broadcast_to(mask != 0, shape))), mask_shape


@pytest.mark.parametrize("typestr", ["<t1", "|t1"])
def test_bit_masks_count_from_the_least_significant_bit_in_c_order(kernels, rng, typestr):
    for size in [1, 7, 8, 9, 31, 64, 65, 100]:
        x = strided(rng, (size,), "f4")
        mask = rng.integers(0, 2, size).astype(bool)
        out = poisoned(size)
        kernels.read1[1, 32](Exposed(x, mask=bits(mask, typestr)), out)
        assert np.array_equal(out.copy_to_host(), expected(x, mask)), size


def test_the_extent_of_a_bit_mask_is_counted_in_bits(kernels, rng, monkeypatch):
    monkeypatch.setattr(bascule.config, "check_memory", True)
    x = strided(rng, (97,), "f4")
    out = poisoned(97)
    mask = np.ones(97, bool)
    kernels.read1[1, 32](Exposed(x, mask=bits(mask)), out)
    assert np.array_equal(out.copy_to_host(), expected(x, mask))
    too_few = Exposed(np.ones(2, "u1"), shape=(97,), strides=None, typestr="<t1", version=0)
    with pytest.raises(ValueError, match=r"'mask'.*takes the bytes"):
        kernels.read1[1, 32](Exposed(x, mask=too_few), out)


def test_an_array_of_single_bits_is_no_array_by_itself(rng):
    lone = bits(np.ones(16, bool))
    with pytest.raises(ValueError, match="masks of other arrays"):
        bascule.as_cuda_array(lone)


def test_bit_masks_of_more_dimensions_follow_the_mask_and_not_the_array(kernels, rng):
    shape = (3, 5, 7)
    for mask_shape in [(3, 5, 7), (5, 7), (3, 1, 7), (5, 1), (1,), ()]:
        x = strided(rng, shape, "f4")
        mask = rng.integers(0, 2, mask_shape).astype(bool)
        out = poisoned(shape)
        kernels.read3[1, 64](Exposed(x, mask=bits(mask)), out)
        assert np.array_equal(out.copy_to_host(), expected(x, np.broadcast_to(mask, shape))), mask_shape


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_without_a_mask_everything_is_valid(kernels, rng, version):
    x = strided(rng, (40,), "f4")
    for fields in ({}, {"mask": None}):
        out, flag = poisoned(40), poisoned(1, "i4")
        kernels.read1[1, 32](Exposed(x, version=version, **fields), out)
        assert np.array_equal(out.copy_to_host(), x)
        kernels.has_mask[1, 1](Exposed(x, version=version, **fields), flag)
        assert flag.copy_to_host() == [0]
    kernels.has_mask[1, 1](Exposed(x, mask=Exposed(np.ones(40, bool))), flag)
    assert flag.copy_to_host() == [1]


@pytest.mark.parametrize("true", [False, True])
def test_an_array_without_dimensions_has_a_mask_of_one_element(kernels, true):
    x = np.array(5, "f4")
    for mask in (Exposed(np.array(true)), bits(np.array(true))):
        out = poisoned(1)
        kernels.read0[1, 1](Exposed(x, mask=mask), out)
        assert out.copy_to_host() == [5 if true else -1]


def test_a_view_of_const_and_a_plain_view_are_made_from_a_masked_one(kernels, rng):
    x, mask = strided(rng, (50,), "f4"), rng.integers(0, 2, 50).astype(bool)
    out = poisoned(2)
    kernels.convert[1, 1](Exposed(x, mask=Exposed(mask)), out)
    assert list(out.copy_to_host()) == [x.sum(), mask.sum()]


def test_kernels_write_through_a_masked_view(kernels, rng):
    x, mask = strided(rng, (50,), "f4"), rng.integers(0, 2, 50).astype(bool)
    exposed = Exposed(x, mask=Exposed(mask))
    kernels.fill_invalid[1, 32](exposed, 9)
    assert np.array_equal(exposed.values(), np.where(mask, x, 9))


def test_a_vector_type_is_valid_as_a_whole(kernels, rng):
    x = rng.integers(0, 50, (20, 4)).astype("f4")
    mask = rng.integers(0, 2, (20, 1)).astype(bool)
    out = poisoned(20)
    kernels.lanes[1, 32](Exposed(x, mask=Exposed(mask)), out)
    assert np.array_equal(out.copy_to_host(), expected(x[:, 0] + x[:, 3], mask[:, 0]))
    with pytest.raises(NotImplementedError, match="argument 1 'x'.*`float4` is valid as a whole.*last axis is 1"):
        kernels.lanes[1, 32](Exposed(x, mask=Exposed(np.ones((20, 4), bool))), out)


def test_template_parameters_come_from_the_elements_of_a_masked_array(rng):
    module = bascule.compile(TEMPLATES)
    for dtype in ("f8", "i4"):
        x, mask = strided(rng, (30,), dtype), rng.integers(0, 2, 30).astype(bool)
        out = poisoned(1, dtype)
        module.total[1, 1](Exposed(x, mask=bits(mask)), out)
        assert out.copy_to_host() == np.ma.array(x, mask=~mask).sum()
    out = poisoned(1, "i4")
    with pytest.raises(NotImplementedError, match="argument 1 'x'.*`bascule::masked_view<T, N>`"):
        module.unmasked[1, 1](Exposed(x, mask=Exposed(mask)), out)
    x = x.astype("f4")
    for fields, overload in (({}, 1), ({"mask": Exposed(mask)}, 2)):
        module.which[1, 1](Exposed(x, **fields), out)
        assert out.copy_to_host() == [overload]


@pytest.mark.parametrize("kernel", ["pointer", "view", "span"])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_row_51_a_mask_for_any_other_parameter_is_not_implemented(kernels, spans, kernel, version):
    x = Exposed(np.ones(8, "f4"), mask=Exposed(np.ones(8, bool)), version=version)
    function, out = (spans.span, poisoned(8, "f8")) if kernel == "span" else (kernels[kernel], poisoned(1, "i4"))
    function.prepare()
    with traced() as operations, pytest.raises(NotImplementedError) as raised:
        function[1, 1](x, out)
    assert operations == []
    assert x.fields["mask"].reads == 0, "whatever it is, it is refused"
    for part in ("argument 1 'x'", "with a mask", "`bascule::masked_view<T, N>`"):
        assert part in str(raised.value)


class Bad:
    def __init__(self, descriptor: object) -> None:
        self.__cuda_array_interface__ = descriptor


def misaligned() -> Exposed:
    mask = Exposed(np.zeros(9, "u4"), shape=(8,))
    address, readonly = mask.fields["data"]
    mask.fields["data"] = (address + 1, readonly)
    return mask


def refused_masks():
    ones = np.ones(8, bool)
    host = np.ones(8, bool)
    address = host.ctypes.data
    return [
        ("a number", lambda: 1, TypeError, ["int"]),
        ("a host array", lambda: host, TypeError, ["numpy.ndarray"]),
        ("the interface is not a dict", lambda: Bad([("shape", (8,))]), TypeError, ["dict"]),
        ("an empty dict", lambda: Bad({}), KeyError, ["shape"]),
        ("complex", lambda: Exposed(np.ones(8, "c8")), TypeError, ["complex64"]),
        ("structures", lambda: Exposed(np.ones(8, "V4")), TypeError, ["4 opaque bytes"]),
        ("times", lambda: Exposed(np.zeros(8, "M8[s]")), TypeError, ["datetime64"]),
        ("an empty mask", lambda: Exposed(np.ones(0, bool)), ValueError, ["(0,)"]),
        ("other byte order", lambda: Exposed(np.ones(8, ">i4")), ValueError, [">i4"]),
        ("two bits an element", lambda: Exposed(ones, typestr="<t2"), ValueError, ["<t2"]),
        ("misaligned", misaligned, ValueError, ["aligned"]),
        ("stream 0", lambda: Exposed(ones, stream=0), ValueError, ["stream", "0"]),
        ("version 4", lambda: Exposed(ones, version=4), ValueError, ["version", "4"]),
        ("host memory", lambda: Exposed(ones, data=(address, False)), ValueError, [hex(address)]),
        ("no pointer", lambda: Exposed(ones, data=(0, False)), ValueError, ["null pointer"]),
    ]


REFUSED = refused_masks()


@pytest.mark.parametrize(("make", "error", "parts"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_row_52_what_is_no_mask_of_the_array_is_refused_before_the_first_operation(kernels, make, error, parts):
    out = poisoned(8)
    x = Exposed(np.ones(8, "f4"), mask=make())
    kernels.read1.prepare()
    with traced() as operations, pytest.raises(error) as raised:
        kernels.read1[1, 32](x, out)
    assert operations == []
    for part in ["argument 1 'x'", "mask", *parts]:
        assert part in str(raised.value)


def test_the_property_of_a_mask_may_raise_anything(kernels):
    class Stubborn:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="^not today$"):
        kernels.read1[1, 32](Exposed(np.ones(8, "f4"), mask=Stubborn()), poisoned(8))


def test_a_mask_is_read_exactly_once_a_launch(kernels):
    mask = Exposed(np.ones(8, bool))
    x = Exposed(np.ones(8, "f4"), mask=mask)
    for launches in range(1, 4):
        kernels.read1[1, 32](x, poisoned(8))
        assert (x.reads, mask.reads) == (launches, launches)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_stream_of_a_mask_joins_the_producers(kernels, version):
    fast, slow, other = bascule.stream(), bascule.stream(), bascule.stream()
    memory = bascule.to_device(np.zeros(40, "u1"))
    handle = slow.handle
    mask = Exposed(np.zeros(40, "u1"), data=memory.__cuda_array_interface__["data"], stream=handle, version=version)
    x = Exposed(np.ones(40, "f4"), mask=mask, stream=other.handle)
    out = poisoned(40)
    bascule.synchronize()
    kernels.set[1, 32, slow](bascule.raw_pointer(memory.__cuda_array_interface__["data"][0]), 40)
    with traced() as operations:
        kernels.read1[1, 32, fast](x, out)
    waits = [operation for operation in operations if operation.kind == "wait"]
    recorded = {operation.stream for operation in operations if operation.kind == "record"}
    assert {slow.handle, other.handle} <= recorded
    assert sum(operation.stream == slow.handle for operation in waits) == 1, "the mask may change after the kernel"
    fast.synchronize()
    assert np.array_equal(out.copy_to_host(), np.where(np.arange(40) % 3 == 0, 1, -1))


def test_a_mask_lives_until_the_kernel_has_read_it(kernels):
    x = Exposed(np.ones(40, "f4"))
    mask = Exposed(np.arange(40) % 2 == 0)
    gone = weakref.ref(mask)
    x.fields["mask"] = mask
    stream = bascule.stream()
    out = poisoned(40)
    kernels.read1[1, 32, stream](x, out)
    del mask, x.fields["mask"]
    gc.collect()
    assert gone() is not None, "the kernel may not have run yet"
    stream.synchronize()
    gc.collect()
    assert gone() is None
    assert np.array_equal(out.copy_to_host(), np.where(np.arange(40) % 2 == 0, 1, -1))


def test_a_bound_launch_keeps_the_mask(kernels):
    x, out = Exposed(np.ones(40, "f4"), mask=bits(np.arange(40) % 5 == 0)), poisoned(40)
    bound = kernels.read1[1, 32].bind(x, out)
    del x
    gc.collect()
    bound()
    assert np.array_equal(out.copy_to_host(), np.where(np.arange(40) % 5 == 0, 1, -1))
