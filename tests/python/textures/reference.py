"""Texture sampling in NumPy, written from the CUDA programming guide ("Texture Fetching").

Where the guide leaves something open, this follows an H100, whose results test_recorded_sampling.py compares with it.

Texels are arrays (..., channels): one, two or three dimensions before the channels, the width last.
"""

from __future__ import annotations

import itertools

import numpy as np

# The guide does not say how many bits a normalised coordinate has when it is multiplied by the extent.
NORMALIZED_BITS = 21


def as_numbers(texels: np.ndarray, read: str) -> np.ndarray:
    """The texels as read without a filter: promoted integers are in [0, 1] or [-1, 1]."""
    if texels.dtype.kind == "f":
        return texels.astype("f8")
    if read == "element":
        return texels
    most = np.float32(np.iinfo(texels.dtype).max)
    return np.maximum(texels.astype("f4") / most, np.float32(-1)).astype("f8")


def texel_along(index: np.ndarray, extent: int, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The texel that is read for an index, which may be out of range, and whether one is read at all."""
    there = np.ones(index.shape, bool)
    if mode == "clamp":
        return np.clip(index, 0, extent - 1), there
    if mode == "wrap":
        return index % extent, there
    if mode == "mirror":
        forth_and_back = np.concatenate([np.arange(extent), np.arange(extent)[::-1]])
        return forth_and_back[index % (2 * extent)], there
    inside = (index >= 0) & (index < extent)
    return np.where(inside, index, 0), inside


def in_texels(x: np.ndarray, extent: int, normalized: bool) -> np.ndarray:
    """The coordinate in texels; a normalised one is truncated to its fixed-point format first."""
    one = 2.0**NORMALIZED_BITS
    return np.floor(x * one) * extent / one if normalized else x


def neighbours(x: np.ndarray, extent: int, normalized: bool) -> tuple[np.ndarray, np.ndarray]:
    """The lower of the two texels around a coordinate, and its distance to that texel in 256ths.

    "9-bit fixed point format with 8 bits of fractional value"; halfway cases are rounded up.
    """
    ticks = np.floor(in_texels(x, extent, normalized) * 256 + 0.5).astype("i8") - 128
    return ticks // 256, ticks % 256


def divided(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Multiplies a weight in 256ths by `part` 256ths and rounds to nearest; halfway cases up."""
    return np.floor(whole * part / 256 + 0.5).astype("i8")


def weights_of(steps: list[np.ndarray]) -> dict[tuple[int, ...], np.ndarray]:
    """Each corner's weight in 256ths. The total of 256 is split along z, then x, then y.

    Halfway cases in y are rounded in favour of the corners (0, 0) and (1, 1).
    """
    x, y, z = [*steps, *[np.zeros_like(steps[0])] * 2][:3]
    made = {}
    for k, slice_weight in ((0, 256 - z), (1, z)):
        right = divided(slice_weight, x)
        left = slice_weight - right
        made[1, 1, k] = divided(right, y)
        made[1, 0, k] = right - made[1, 1, k]
        made[0, 0, k] = divided(left, 256 - y)
        made[0, 1, k] = left - made[0, 0, k]
    return made


def away_from_zero(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def mixed_floats(corners: list[tuple[np.ndarray, np.ndarray]], bits: int) -> np.ndarray:
    """Weighted sums of numbers of `bits` significant bits. `corners` are pairs of weights of shape (n,) and texels of
    shape (n, channels); each four pairs are a slice.

    In a slice, texels of non-zero weight are truncated to multiples of a unit: the last place of the largest of them in
    a format of bits + 4 significant bits. The slices' sums are added, and rounded with halfway cases away from 0.
    """
    total = np.zeros_like(corners[0][1])
    for first in range(0, len(corners), 4):
        counted = [(weight[:, None], np.where(weight[:, None] > 0, v, 0)) for weight, v in corners[first : first + 4]]
        largest = np.max([np.abs(v) for _, v in counted], axis=0)
        unit = np.ldexp(1.0, np.frexp(largest)[1] - (bits + 4))
        total += sum(weight * np.trunc(v / unit) for weight, v in counted) * unit / 256
    last = np.ldexp(1.0, np.frexp(total)[1] - bits)
    return away_from_zero(total / last) * last


def mixed_integers(corners: list[tuple[np.ndarray, np.ndarray]], dtype: np.dtype) -> np.ndarray:
    """Weighted sums of promoted texels: computed in 16 bits, even for 8-bit texels, with halfway cases up."""
    total = sum(weight[:, None] * v.astype("i8") for weight, v in corners)
    if dtype == np.uint8:  # 255 becomes 65535
        found = np.floor(total * 257 / 256 + 0.5)
    elif dtype == np.int8:  # 127 becomes 32767, but the scaling is coarse
        found = total + np.floor((total + 16 * np.floor(total / 4096) + 64) / 128)
    else:
        found = np.floor(total / 256 + 0.5)
    most = 65535 if dtype.kind == "u" else 32767
    return (np.maximum(found, -most).astype("f4") / np.float32(most)).astype("f8")


def sample(
    texels: np.ndarray,
    at: list[np.ndarray],
    *,
    address: str | tuple[str, ...] = "clamp",
    filter: str = "point",
    normalized: bool = False,
    read: str = "element",
    border: tuple[float, ...] = (0, 0, 0, 0),
) -> np.ndarray:
    """Samples at `at`: coordinates x, y and z, one for each dimension. The result has the shape (n, channels)."""
    modes = (address,) * 3 if isinstance(address, str) else address
    extents = texels.shape[-2::-1]
    promoted = texels.dtype.kind != "f" and read == "normalized"

    def fetch(index: list[np.ndarray], numbers: np.ndarray) -> np.ndarray:
        places, inside = [], np.ones(index[0].shape, bool)
        for i, extent, mode in zip(index, extents, modes, strict=False):
            place, there = texel_along(i, extent, mode)
            places.append(place)
            inside &= there
        outside = np.array(border[: texels.shape[-1]], "f8").astype(numbers.dtype)
        return np.where(inside[:, None], numbers[tuple(places[::-1])], outside)

    if filter == "point":
        nearest = [np.floor(in_texels(x, n, normalized)).astype("i8") for x, n in zip(at, extents, strict=True)]
        return fetch(nearest, as_numbers(texels, read))
    if len(at) == 1:  # a row is filtered as a plane of one row, at its upper edge
        return sample(
            texels[None],
            [at[0], np.zeros(len(at[0]))],
            address=modes,
            filter=filter,
            normalized=normalized,
            read=read,
            border=border,
        )
    low, steps = [], []
    for x, extent, mode in zip(at, extents, modes, strict=False):
        index, step = neighbours(x, extent, normalized)
        if mode == "clamp":  # coordinates are clamped to the centres of the outermost texels
            step = np.where((index < 0) | (index >= extent - 1), 0, step)
        low.append(index)
        steps.append(step)
    numbers = texels if promoted else as_numbers(texels, read)
    weights = weights_of(steps)
    corners = [
        (weights[i, j, k], fetch([a + bit for a, bit in zip(low, (i, j, k), strict=False)], numbers))
        for k, j, i in itertools.product(range(2 if len(at) == 3 else 1), (0, 1), (0, 1))
    ]
    if promoted:
        return mixed_integers(corners, texels.dtype)
    return mixed_floats(corners, 11 if texels.dtype == np.float16 else 24)


def gather(texels: np.ndarray, x: np.ndarray, y: np.ndarray, component: int, address: str) -> np.ndarray:
    """tex2Dgather: the four texels that linear filtering would use, counter-clockwise from the lower left."""
    height, width = texels.shape[:2]
    i, j = neighbours(x, width, False)[0], neighbours(y, height, False)[0]
    made = []
    for right, down in ((0, 1), (1, 1), (1, 0), (0, 0)):
        column, has_column = texel_along(i + right, width, address)
        row, has_row = texel_along(j + down, height, address)
        value = texels[row, column, component]
        made.append(np.where(has_column & has_row, value, 0))
    return np.stack(made, axis=1)


def cube_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The cube face that a direction meets, and the coordinates on it, from 0 to 1, by the guide's table."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif ay >= az:
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2
