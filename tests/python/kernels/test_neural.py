"""Layers of neural networks. Integers make convolutions exact; the others are bounded from double precision."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted


@pytest.mark.parametrize("block", [32, 96, 256])
@pytest.mark.parametrize("shape", [(1, 1), (7, 31), (33, 33), (5, 1000)])
def test_softmax_in_one_pass_sums_to_one(kernel, rng, shape, block):
    rows, columns = shape
    logits = (rng.standard_normal(shape) * 5 + 80).astype("f4")  # exp of the largest is infinite in float
    out = wanted(shape, "f4")
    kernel("neural.softmax_online")[rows, block](given(logits), out, columns)
    shares = np.exp(logits.astype("f8") - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    # expf is accurate to 2 units, and a term is rescaled at most once per step and join: at most some 60 roundings.
    np.testing.assert_allclose(out.read(), shares, rtol=60 * 2.0**-24, atol=1e-38)
    np.testing.assert_allclose(out.read().sum(axis=1, dtype="f8"), 1, rtol=1e-5)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(1, 2), (7, 31), (33, 257)])
def test_layer_norm_of_views(kernel, rng, shape, block):
    rows, columns = shape
    values = (rng.standard_normal(shape) * 3 + 1).astype("f4")
    gain, bias = rng.standard_normal((2, columns)).astype("f4")
    out = wanted(shape, "f4")
    kernel("neural.layer_norm")[rows, block, None, 4 * block](given(values), given(gain), given(bias), out, 1e-5)
    wide = values.astype("f8")
    normal = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + np.float32(1e-5))
    expected = normal * gain + bias
    # The mean and the variance have at most `columns` / block + log2(block) roundings each.
    bound = 40 * 2.0**-24 * (np.abs(normal * gain) + np.abs(bias) + np.abs(gain))
    assert (np.abs(out.read() - expected) <= bound).all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(1, 1), (31, 10), (257, 33)])
def test_cross_entropy_leaves_out_labels_below_zero(kernel, rng, shape, block):
    rows, classes = shape
    logits = rng.standard_normal(shape) * 20
    labels = rng.integers(-1, classes, rows, dtype="i4")
    loss = wanted(rows, "f8")
    kernel("neural.cross_entropy")[blocks_for(rows, block), block](given(logits), given(labels), loss, *shape)
    greatest = logits.max(axis=1)
    logarithm = np.log(np.exp(logits - greatest[:, None]).sum(axis=1))
    expected = logarithm + greatest - logits[np.arange(rows), labels]
    expected[labels < 0] = 0
    # exp and log are accurate to a unit or two on both sides; a sum has `classes` roundings.
    np.testing.assert_allclose(loss.read(), expected, rtol=0, atol=(classes + 10) * 2.0**-52 * 100)
    assert (loss.read()[labels < 0] == 0).all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("size", "taps"), [(1, 1), (33, 33), (257, 3), (1000, 65)])
def test_convolution_along_a_line_is_numpys(kernel, rng, size, taps, block):
    signal, taps_ = rng.integers(-90, 90, size).astype("f4"), rng.integers(-90, 90, taps).astype("f4")
    out = wanted(size - taps + 1, "f4")
    launch = kernel("neural.convolve_line")[blocks_for(size, block), block, None, 4 * taps]
    launch(given(signal), given(taps_), out, size, taps)
    np.testing.assert_array_equal(out.read(), np.convolve(signal, taps_, "valid"))


@pytest.mark.parametrize("block", [(32, 1), (7, 5)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 13, 17), (5, 8, 33)])
def test_convolution_over_channels_pads_with_zeros(kernel, rng, shape, stride, block):
    channels, rows, columns = shape
    image = rng.integers(-20, 20, shape).astype("f4")
    weights, bias = rng.integers(-20, 20, (4, channels, 3, 3)).astype("f4"), rng.integers(-9, 9, 4).astype("f4")
    out_rows, out_columns = blocks_for(rows, stride), blocks_for(columns, stride)
    out = wanted((4, out_rows, out_columns), "f4")
    grid = (blocks_for(out_columns, block[0]), blocks_for(out_rows, block[1]), 4)
    kernel("neural.convolve_plane")[grid, block](
        given(image), given(weights), given(bias), out, channels, rows, columns, stride
    )
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    expected = np.einsum("cyxij,kcij->kyx", windows, weights) + bias[:, None, None]
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (31, 33), (18, 41)])
def test_pooling_keeps_the_greatest_and_its_place(kernel, rng, shape, block):
    values = rng.permutation(shape[0] * shape[1]).reshape(shape).astype("f4")
    pooled = ((shape[0] + 1) // 2, (shape[1] + 1) // 2)
    out, where = wanted(pooled, "f4"), wanted(pooled, "i4")
    kernel("neural.max_pool")[2, block](given(values), out, where, *shape)
    padded = np.full((pooled[0] * 2, pooled[1] * 2), -1, "f4")
    padded[: shape[0], : shape[1]] = values
    expected = padded.reshape(pooled[0], 2, pooled[1], 2).max(axis=(1, 3))
    np.testing.assert_array_equal(out.read(), expected)
    np.testing.assert_array_equal(values.ravel()[where.read()], expected)
