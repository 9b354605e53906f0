"""Control flow: switches, printing, assertions, and thread indices."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


def cases(x, k):
    low = x & 2**32 - 1
    toward_zero = lambda a, b: int(np.trunc(a / b))  # noqa: E731 - small numbers: exact
    return [
        *(x + 1, x - 7, x * 3, -x, ~x, x ^ 0x55, x << 3, x >> 2, x & 255, x | 256),
        *(
            toward_zero(x, 3),
            x - 11 * toward_zero(x, 11),
            x * x,
            abs(x),
            min(x, 5),
            max(x, -5),
            x + k,
            x - k,
            x * k,
            x ^ k,
        ),
        *(low.bit_count(), 32 - low.bit_length(), int(f"{low:032b}"[::-1], 2), (low & -low).bit_length()),
        *(x == 0, x > 0, x < 0, not x, toward_zero(x, 5), x - 13 * toward_zero(x, 13)),
        *(x + 100, x - 1000, x * 7, x * 9 - 1, (x + 3) * 2, x >> 5, x << 1, x & k, x | k, 42),
        *((x + 5) * 2 ^ 1, x * 2 ^ 1),
    ]


@sweep
@blocks
def test_a_switch_of_forty_cases_takes_the_right_one_in_every_lane(kernel, rng, size, block):
    ops, values = rng.integers(-2, 45, size, dtype="i4"), rng.integers(-9999, 9999, size, dtype="i4")
    ops[::31] = -1000000
    out = wanted(size, "i4")
    kernel("control.switch_forty")[2, block](given(ops), given(values), out, size)

    def expected(k, x):
        if k == -1000000:
            return x ^ 1
        return cases(x, k)[k] if 0 <= k < 42 else -1

    rows = [expected(*pair) for pair in zip(ops.tolist(), values.tolist(), strict=True)]
    np.testing.assert_array_equal(out.read(), np.array(rows, "i8").astype("u4").view("i4"))


@pytest.mark.parametrize(("size", "block"), [(1, 32), (20, 7), (20, 33)])
def test_printf_prints_every_threads_line_once(kernel, capfd, size, block):
    values = np.linspace(-5, 5, size, dtype="f4")
    kernel("control.print_lines")[blocks_for(size, block), block](given(values), size)
    bascule.synchronize()
    lines = capfd.readouterr().out.splitlines()
    expected = [
        f"line {i} of {size}: {value:8.3f} {'odd' if i % 2 else 'even'} {2**40 + i} {chr(97 + i)} %"
        for i, value in enumerate(values)
    ]
    assert sorted(lines) == sorted(expected)


@sweep
@blocks
def test_assertions_that_hold_say_nothing(kernel, rng, capfd, size, block):
    numbers = np.sort(rng.integers(-50, 50, size, dtype="i4"))
    out = wanted(size, "i4")
    kernel("control.assert_in_order")[blocks_for(size, block), block](given(numbers), out, size)
    np.testing.assert_array_equal(out.read(), numbers)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("block", [1, 31, 33, 64])
@sweep
def test_structs_in_shared_memory_keep_their_layout(kernel, rng, size, block):
    values = rng.integers(0, 256, size, dtype="u1")
    weights, sums = wanted(size, "f8"), wanted(size, "i4")
    grid = blocks_for(size, block)
    kernel("control.shared_structs")[grid, block](given(values), weights, sums, size)
    padded = np.zeros(grid * block, "i4")
    padded[:size] = values
    mirrored = padded.reshape(grid, block)[:, ::-1].ravel()[:size]
    np.testing.assert_array_equal(weights.read(), mirrored / 8)
    tag = mirrored.astype("u1").view("i1").astype("i4")
    counts = sum((mirrored * (k - 1) * 100).astype("i2").astype("i4") * (k + 1) for k in range(3))
    rest = sum((mirrored + k) % 256 for k in range(5))
    np.testing.assert_array_equal(sums.read(), tag + counts + rest)


@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 2, 5)])
@pytest.mark.parametrize("block", [(1, 1, 1), (5, 3, 4), (33, 2, 3), (1, 7, 9)])
def test_threads_know_their_place_in_three_dimensions(kernel, grid, block):
    threads, count = int(np.prod(block)), int(np.prod(grid))
    out = wanted((count, threads, 4), "i4")
    kernel("control.places")[grid, block](out)

    def packed(extent):
        z, y, x = np.meshgrid(*(np.arange(n) for n in extent[::-1]), indexing="ij")
        return (z << 20 | y << 10 | x).ravel()

    result, threads_ = out.read(), np.arange(threads)
    np.testing.assert_array_equal(result[..., 0], np.broadcast_to(packed(grid)[:, None], (count, threads)))
    np.testing.assert_array_equal(result[..., 1], np.broadcast_to(packed(block), (count, threads)))
    np.testing.assert_array_equal(result[..., 2], np.broadcast_to(threads_ % 32, (count, threads)))
    np.testing.assert_array_equal(result[..., 3], np.broadcast_to(threads_ // 32, (count, threads)))
