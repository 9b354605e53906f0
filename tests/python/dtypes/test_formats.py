"""Every element type through a kernel, by every typestr that producers write for it; and ml_dtypes' small formats.

References: NumPy and ml_dtypes on the host; for rounding, all values of a format.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from conftest import ForeignArray

import bascule

HEADERS = """
#include <cuda/std/complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
struct Sixteen { unsigned char bytes[16]; };
"""

BFLOAT16, E4M3, E5M2, E8M0, E2M3, E3M2, E2M1 = (
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
        *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
    )
)
CPP = {
    np.dtype("?"): "bool",
    np.dtype("i1"): "signed char",
    np.dtype("u1"): "unsigned char",
    np.dtype("i2"): "short",
    np.dtype("u2"): "unsigned short",
    np.dtype("i4"): "int",
    np.dtype("u4"): "unsigned int",
    np.dtype("i8"): "long long",
    np.dtype("u8"): "unsigned long long",
    np.dtype("f2"): "__half",
    np.dtype("f4"): "float",
    np.dtype("f8"): "double",
    np.dtype("c8"): "cuda::std::complex<float>",
    np.dtype("c16"): "cuda::std::complex<double>",
    np.dtype("M8[ns]"): "long long",
    np.dtype("m8[25s]"): "long",
    np.dtype("V16"): "Sixteen",
    BFLOAT16: "__nv_bfloat16",
    E4M3: "__nv_fp8_e4m3",
    E5M2: "__nv_fp8_e5m2",
    E8M0: "__nv_fp8_e8m0",
    E2M3: "__nv_fp6_e2m3",
    E3M2: "__nv_fp6_e3m2",
    E2M1: "__nv_fp4_e2m1",
}
SMALL = [BFLOAT16, E4M3, E5M2, E8M0, E2M3, E3M2, E2M1]
REAL = [each for each in SMALL if each != E8M0]


def forms(dtype):
    """The typestrs that producers write for a dtype."""
    text = dtype.str
    order, rest = text[0], text[1:]
    if dtype.itemsize == 1:
        yield from (f"{sign}{rest}" for sign in "|<>=")
        if dtype == E5M2:  # the only one of the formats to which NumPy gives a letter
            yield from ("|V1", "<V1")
    else:
        yield from (f"{sign}{rest}" for sign in "<=")
    if order == "|" and dtype.itemsize > 1:
        yield f"|{rest}"
    if dtype == BFLOAT16:
        yield "|V2"


@pytest.fixture(scope="module")
def kernels():
    text = [HEADERS]
    for number, cpp in enumerate(CPP.values()):
        text.append(
            f"__global__ void reverse_{number}(const {cpp}* x, {cpp}* y, int n) "
            "{ for (int i = 0; i < n; ++i) y[i] = x[n - 1 - i]; }"
        )
    for number, dtype in enumerate(SMALL):
        # In ml_dtypes' formats of less than a byte, the other bits are ignored.
        text.append(f"""
__global__ void widen_{number}(const {CPP[dtype]}* x, float* y, int n) {{
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = static_cast<float>(x[i]);
}}
__global__ void store_{number}({CPP[dtype]} value, {CPP[dtype]}* out, int i) {{ out[i] = value; }}""")
    text.append("""
__global__ void seen(long long a, long b, unsigned long long* out) { out[0] = a; out[1] = b; }
__global__ void wrong(
    unsigned long long* a, double* b, signed char* c, __nv_fp8_e5m2* d, __half* e, unsigned short* f) {}
__global__ void by_value(double a, int b, unsigned long long c) {}
__global__ void four(__nv_fp8x4_e4m3* x, __nv_fp8x4_e4m3 y) { *x = y; }
__device__ __nv_fp8_e4m3 table[3];
""")
    return bascule.compile("\n".join(text))


@pytest.mark.parametrize("dtype", CPP, ids=str)
def test_every_element_type_goes_through_a_kernel_by_every_typestr_for_it(kernels, dtype, rng):
    number = list(CPP).index(dtype)
    bits = {E2M3: 6, E3M2: 6, E2M1: 4, np.dtype("?"): 1}.get(dtype, 8)
    host = np.frombuffer(rng.integers(0, 2**bits, 7 * dtype.itemsize, "u1").tobytes(), dtype)
    source = bascule.to_device(host)
    assert source.dtype == dtype
    assert source.__cuda_array_interface__["typestr"] == host.__array_interface__["typestr"]
    arrays = [source, *(ForeignArray(source, typestr=form) for form in forms(dtype))]
    for given in arrays:
        out = bascule.to_device(np.frombuffer(b"\xa5" * host.nbytes, dtype))
        kernels[f"reverse_{number}"][1, 1](given, out, 7)
        back = out.copy_to_host()
        assert back.dtype == dtype
        assert back.tobytes() == host[::-1].tobytes()


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_value_of_a_small_format_means_the_same_on_the_device(kernels, dtype):
    bits = {BFLOAT16: 16, E2M3: 6, E3M2: 6, E2M1: 4}.get(dtype, 8)
    host = np.arange(2**bits, dtype=f"u{dtype.itemsize}").view(dtype)
    out = bascule.to_device(np.full(host.size, -1, "f4"))
    kernels[f"widen_{SMALL.index(dtype)}"][1, 128](bascule.to_device(host), out, host.size)
    np.testing.assert_array_equal(out.copy_to_host(), host.astype("f4"))


def nearest(value, dtype):
    """Returns the bits of the nearest value, by search; ties go to the even pattern. None beyond the largest."""
    bits = {BFLOAT16: 16, E2M3: 6, E3M2: 6, E2M1: 4}.get(dtype, 8)
    patterns = np.arange(2 ** (bits - 1), dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # for signalling NaNs
        numbers = patterns.view(dtype).astype("f8")
    patterns, numbers = patterns[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    odd = patterns[-1] % 2 == 1
    if abs(value) > beyond or (abs(value) == beyond and odd):
        return None
    distance = np.abs(numbers - abs(value))
    best = patterns[distance == distance.min()]
    pattern = int(best[0] if len(best) == 1 else best[best % 2 == 0][0])
    return pattern | (2 ** (bits - 1) if np.signbit(value) else 0)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_a_number_by_value_becomes_the_nearest_of_the_format_ties_to_even(kernels, dtype, rng):
    bits = {BFLOAT16: 16, E2M3: 6, E3M2: 6, E2M1: 4}.get(dtype, 8)
    with np.errstate(invalid="ignore"):  # for signalling NaNs
        every = np.arange(2 ** (bits - 1), dtype=f"u{dtype.itemsize}").view(dtype).astype("f8")
    every = every[np.isfinite(every)]
    middles = (every[1:] + every[:-1]) / 2
    values = [*rng.choice(every, 12), *rng.choice(middles, 12), *(rng.standard_normal(24) * every[-1] / 4), -0.0]
    values += [np.nextafter(middles[-1], 0), np.nextafter(middles[0], 1), -middles[1]]
    out = bascule.to_device(np.zeros(len(values), dtype))
    store = kernels[f"store_{SMALL.index(dtype)}"][1, 1]
    for i, value in enumerate(values):
        store(float(value), out, i)
    got = out.copy_to_host().view(f"u{dtype.itemsize}").tolist()
    assert got == [nearest(value, dtype) for value in values]
    beyond = float(every[-1] + (every[-1] - every[-2]))
    assert nearest(beyond, dtype) is None
    with pytest.raises(OverflowError, match=f"argument 1 'value'.*{CPP[dtype]}.*largest number"):
        store(beyond, out, 0)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_a_scalar_of_ml_dtypes_keeps_its_bits(kernels, dtype, rng):
    bits = {BFLOAT16: 16, E2M3: 6, E3M2: 6, E2M1: 4}.get(dtype, 8)
    host = rng.choice(np.arange(2**bits, dtype=f"u{dtype.itemsize}"), 16, replace=False).view(dtype)
    host = host[np.isfinite(host.astype("f4"))]
    out = bascule.to_device(np.zeros(host.size, dtype))
    for i, value in enumerate(host):
        kernels[f"store_{SMALL.index(dtype)}"][1, 1](value, out, i)
    assert out.copy_to_host().tobytes() == host.tobytes()


def test_infinity_and_nan_pass_where_the_format_has_them(kernels):
    def stored(value, dtype):
        out = bascule.to_device(np.zeros(1, dtype))
        kernels[f"store_{SMALL.index(dtype)}"][1, 1](value, out, 0)
        return out.copy_to_host()[0]

    for dtype in (BFLOAT16, E5M2):
        assert float(stored(float("-inf"), dtype)) == -np.inf
    for dtype in (BFLOAT16, E5M2, E4M3, E8M0):
        assert np.isnan(float(stored(float("nan"), dtype)))
    for dtype in (E4M3, E2M3, E3M2, E2M1):
        with pytest.raises(OverflowError, match="no infinity"):
            stored(float("inf"), dtype)
    for dtype in (E2M3, E3M2, E2M1):
        with pytest.raises(ValueError, match="no NaN"):
            stored(float("nan"), dtype)


def test_a_scale_by_value_is_a_power_of_two(kernels):
    out = bascule.to_device(np.zeros(3, E8M0))
    store = kernels[f"store_{SMALL.index(E8M0)}"][1, 1]
    for i, value in enumerate((1, 2.0**-127, 2.0**127)):
        store(value, out, i)
    assert out.copy_to_host().view("u1").tolist() == [127, 0, 254]
    for value in (0, 3, -2, 2.0**128, 2.0**-128):
        with pytest.raises(ValueError, match="powers of two"):
            store(value, out, 0)


def test_vectors_of_small_numbers_are_tuples_and_a_last_axis(kernels):
    host = np.zeros((1, 4), E4M3)
    out = bascule.to_device(host)
    kernels.four[1, 1](out, (1, -2, 0.5, 448))
    np.testing.assert_array_equal(out.copy_to_host().astype("f4"), [[1, -2, 0.5, 448]])


def test_a_template_takes_its_type_from_an_array_that_says_which_format_it_is():
    # A separate text, because each instance compiles all of it.
    twice = bascule.compile("""
#include <cuda_bf16.h>
#include <cuda_fp8.h>
template <class T> __global__ void twice(T* x) { *x = T(float(*x) * 2); }
""").twice
    for dtype in (BFLOAT16, E5M2):
        array = bascule.to_device(np.array([3], dtype))
        twice[1, 1](array)
        assert float(array.copy_to_host()[0]) == 6


def test_a_variable_of_a_small_format_says_so(kernels):
    table = kernels.get_global("table")
    assert table.dtype == E4M3


def zeros(dtype):
    return bascule.to_device(np.zeros(2, dtype))


@pytest.mark.parametrize(
    ("position", "dtype", "says"),
    [
        (0, "M8[s]", ["unsigned long long*", "datetime64[s]", "`long long*`"]),
        (1, "m8[7D]", ["double*", "timedelta64[7D]", "`long long*`"]),
        (2, ml_dtypes.int4, ["signed char*", "int4"]),
        (2, E4M3, ["signed char*", "float8_e4m3fn", "`__nv_fp8_e4m3*`"]),
        (3, E4M3, ["__nv_fp8_e5m2*", "float8_e4m3fn", "float8_e5m2"]),
        (3, "u1", ["__nv_fp8_e5m2*", "uint8"]),
        (4, BFLOAT16, ["__half*", "bfloat16", "`__nv_bfloat16*`"]),
        (5, BFLOAT16, ["unsigned short*", "bfloat16"]),
    ],
    ids=str,
)
def test_an_array_of_another_format_is_refused(kernels, position, dtype, says):
    arguments = [zeros("u8"), zeros("f8"), zeros("i1"), zeros(E5M2), zeros("f2"), zeros("u2")]
    kernels.wrong[1, 1](*arguments)
    arguments[position] = zeros(dtype)
    with pytest.raises(TypeError, match=f"argument {position + 1}") as caught:
        kernels.wrong[1, 1](*arguments)
    for words in says:
        assert words in str(caught.value)


def test_times_by_value_go_to_64_bits_with_a_sign_alone(kernels):
    out = bascule.to_device(np.zeros(2, "u8"))
    when, span = np.datetime64("2024-02-29T12:00", "ns"), np.timedelta64(-3, "D")
    kernels.seen[1, 1](when, span, out)
    assert out.copy_to_host().view("i8").tolist() == [when.view("i8"), -3]
    for position in range(3):
        arguments = [0.5, 1, 2]
        arguments[position] = span
        with pytest.raises(TypeError, match=rf"argument {position + 1}.*timedelta64\[D\].*long long"):
            kernels.by_value[1, 1](*arguments)


def test_new_arrays_have_the_dtype_they_were_asked_for():
    for dtype in (*SMALL, np.dtype(ml_dtypes.uint2), np.dtype("m8[25s]")):
        assert bascule.device_array(3, dtype).dtype == dtype
    nested = np.dtype([("a", BFLOAT16), ("b", [("c", E4M3, (2,)), ("d", "M8[h]")])])
    host = np.frombuffer(bytes(range(2 * nested.itemsize)), nested)
    array = bascule.to_device(host)
    assert array.dtype == nested
    assert array.copy_to_host().dtype == nested
    assert array.copy_to_host().tobytes() == host.tobytes()
