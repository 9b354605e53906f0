"""Views in kernels compared with NumPy: random shapes and strides, comparing every byte of their memory."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .arrays import Exposed, memory_of, strided

SOURCE = r"""
using bascule::array_view;
struct Six { short a, b, c; };
__global__ void copy0(array_view<const float, 0> x, array_view<double, 0> y) { y() = 2 * x() + x.size(); }
__global__ void copy1(array_view<const float> x, array_view<double> y) {
    for (long long t = threadIdx.x; t < y.size(); t += blockDim.x) y[t] = 2 * x(t) + t;
}
__global__ void copy2(array_view<const float, 2> x, array_view<double, 2> y) {
    for (long long t = threadIdx.x; t < y.size(); t += blockDim.x) {
        const int i = t / y.extent(1), j = t % y.extent(1);
        y(i, j) = 2 * x(i, j) + t;
    }
}
__global__ void copy3(array_view<const float, 3> x, array_view<double, 3> y) {
    const long long n = y.extent(1) * y.extent(2);
    for (long long t = threadIdx.x; t < y.size(); t += blockDim.x) {
        const unsigned i = t / n, j = t % n / y.extent(2), k = t % y.extent(2);
        y(i, j, k) = 2 * x(i, j, k) + t;
    }
}
__global__ void copy5(array_view<const float, 5> x, array_view<double, 5> y) {
    for (long long t = threadIdx.x; t < y.size(); t += blockDim.x) {
        long long rest = t, at[5];
        for (int d = 4; d >= 0; rest /= y.extent(d--)) at[d] = rest % y.extent(d);
        y(at[0], at[1], at[2], at[3], at[4]) = 2 * x(at[0], at[1], at[2], at[3], at[4]) + t;
    }
}
__global__ void sixes(array_view<Six, 2> s) {
    for (long long t = threadIdx.x; t < s.size(); t += blockDim.x) {
        Six& six = s(t / s.extent(1), t % s.extent(1));
        six = {six.c, six.a, static_cast<short>(six.b + t)};
    }
}
__global__ void told(array_view<const float, 3> x, array_view<long long, 2> y) {
    for (int d = 0; d < 3; ++d) y(0, d) = x.extent(d), y(1, d) = x.stride(d);
    y(0, 3) = x.size();
    y(1, 3) = reinterpret_cast<long long>(x.data());
}
__global__ void windows(array_view<const float, 2> x, array_view<float> y) {
    for (long long t = threadIdx.x; t < y.size(); t += blockDim.x) {
        y[t] = 0;
        for (int j = 0; j < x.extent(1); ++j) y[t] += x(t, j);
    }
}
__global__ void write(array_view<float, 2> x) { x(0, 0) = 1; }
"""


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    return bascule.compile(SOURCE)


def shapes(rng, rank, count):
    return [tuple(int(extent) for extent in rng.integers(1, 8 - rank // 2, rank)) for _ in range(count)]


def numbered(x):
    return 2.0 * x + np.arange(x.size).reshape(x.shape)


def launch_and_compare(kernel, x, y):
    """Checks that the kernel writes 2 * x + the element's number to y, and no other byte."""
    source, target = Exposed(x), Exposed(y)
    kernel[1, 64](source, target)
    y[...] = numbered(x)
    assert np.array_equal(target.buffer.copy_to_host(), memory_of(y)), (x.shape, x.strides, y.strides)


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_an_array_view_finds_every_element_by_any_strides(kernels, rng, rank):
    for shape in shapes(rng, rank, 12):
        launch_and_compare(kernels[f"copy{rank}"], strided(rng, shape, "f4"), strided(rng, shape, "f8"))


def test_an_array_view_has_no_dimensions_where_the_array_has_none(kernels):
    target = Exposed(np.array(77.0))
    kernels.copy0[1, 1](Exposed(np.array(4, "f4")), target)
    assert target.values() == 9
    with pytest.raises(ValueError, match="argument 2 'y'.*0 dimensions, the array 1"):
        kernels.copy0[1, 1](Exposed(np.array(4, "f4")), Exposed(np.zeros(1)))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2), (2, 0, 0, 1, 5)])
def test_an_empty_view_has_its_extents_and_no_elements(kernels, shape):
    x, y = np.zeros(shape, "f4"), np.zeros(shape, "f8")
    kernels[f"copy{len(shape)}"][1, 32](Exposed(x), Exposed(y))
    bascule.synchronize()


def test_axes_of_stride_zero_repeat_and_are_refused_where_the_kernel_writes(kernels, rng):
    for shape, spread in [((4,), (3, 4)), ((3, 1), (3, 5)), ((1, 1), (4, 4))]:
        x = np.broadcast_to(strided(rng, shape, "f4"), spread)
        launch_and_compare(kernels.copy2, x, strided(rng, spread, "f8"))
        with pytest.raises(ValueError, match="argument 1 'x'.*broadcast.*const"):
            kernels.write[1, 1](Exposed(x))


def test_overlapping_windows_are_read_as_they_lie(kernels, rng):
    x = np.lib.stride_tricks.sliding_window_view(strided(rng, (20,), "f4"), 5)
    target = Exposed(np.full(16, 77, "f4"))
    kernels.windows[1, 32](Exposed(x), target)
    assert np.array_equal(target.values(), x.sum(1))


def test_structs_of_six_bytes_stand_at_strides_of_eight(kernels, rng):
    six = np.dtype([("a", "i2"), ("b", "i2"), ("c", "i2")])
    for strides in [(8, 32), (40, 8), (6, 60), (-64, 14)]:
        memory = rng.integers(0, 256, 1000, "u1")
        s = np.ndarray((4, 3), six, memory, 500, strides)
        target = Exposed(s)
        kernels.sixes[1, 32](target)
        old = s.copy()
        s["a"], s["b"] = old["c"], old["a"]
        s["c"] = old["b"] + np.arange(12, dtype="i2").reshape(4, 3)
        assert np.array_equal(target.buffer.copy_to_host(), memory_of(s)), strides


def test_a_view_tells_its_extents_strides_size_and_address(kernels, rng):
    for shape in shapes(rng, 3, 5):
        x = Exposed(strided(rng, shape, "f4"))
        target = Exposed(np.full((2, 4), -77, "i8"))
        kernels.told[1, 1](x, target)
        address = x.fields["data"][0]
        assert target.values().tolist() == [[*shape, np.prod(shape)], [*x.host.strides, address]]


@pytest.mark.parametrize("kernel", ["right", "left", "stride"])
def test_an_mdspan_reads_in_its_own_order(spans, rng, kernel):
    for shape in shapes(rng, 3, 8):
        x = rng.integers(0, 100, shape).astype("f4")
        if kernel == "left":
            x = np.asfortranarray(x)
        elif kernel == "stride":
            x = np.abs(strided(rng, shape, "f4"))
            x = x[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in x.strides)]
        launch_and_compare(spans[kernel], x, strided(rng, shape, "f8"))


@pytest.mark.parametrize("kernel", ["write_right", "write_left", "write_stride"])
def test_an_mdspan_writes_in_its_own_order_and_nowhere_else(spans, rng, kernel):
    for shape in shapes(rng, 3, 8):
        y = np.full(shape, 77, "f4", order="F" if kernel == "write_left" else "C")
        if kernel == "write_stride":
            y = strided(rng, shape, "f4")
            y = y[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in y.strides)]
        target = Exposed(y)
        spans[kernel][1, 64](target)
        y[...] = np.arange(y.size).reshape(shape)
        assert np.array_equal(target.buffer.copy_to_host(), memory_of(y)), shape


@pytest.mark.parametrize("size", [0, 1, 31, 100])
def test_a_span_has_the_length_of_the_array(spans, rng, size):
    x, target = rng.integers(0, 100, size).astype("f4"), Exposed(np.full(size, 77.0))
    spans.span[1, 32](Exposed(x), target)
    assert np.array_equal(target.values(), 2 * x + size)


@pytest.mark.parametrize(
    ("kernel", "x", "parts"),
    [
        ("right", np.zeros((2, 3, 4), "f4").T, ["C order", "`bascule::array_view<const float, 3>`"]),
        ("left", np.zeros((2, 3, 4), "f4"), ["Fortran order"]),
        ("stride", np.zeros((2, 3, 4), "f4")[::-1], ["positive strides", "axis 0 has -48 bytes"]),
        ("stride", np.broadcast_to(np.zeros(4, "f4"), (2, 3, 4)), ["positive strides", "axis 0 has 0 bytes"]),
    ],
)
def test_an_mdspan_refuses_what_its_layout_cannot_say(spans, kernel, x, parts):
    with pytest.raises(ValueError) as raised:
        spans[kernel][1, 1](Exposed(x), Exposed(np.zeros(x.shape)))
    for part in ["argument 1 'x'", *parts]:
        assert part in str(raised.value)
