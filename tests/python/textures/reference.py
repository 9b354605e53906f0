"""How textures are sampled, written with NumPy from the CUDA programming guide ("Texture Fetching").

Texels are arrays (..., channels): one, two or three dimensions before the channels, the width last. Numbers are
float64.
"""

from __future__ import annotations

import itertools

import numpy as np


def as_numbers(texels: np.ndarray, read: str) -> np.ndarray:
    """The texels as filters see them: integers that are promoted lie in [0, 1] or [-1, 1]."""
    if read == "element" or texels.dtype.kind == "f":
        return texels.astype("f8")
    most = np.float32(np.iinfo(texels.dtype).max)
    return np.maximum(texels.astype("f4") / most, np.float32(-1)).astype("f8")


def texel_along(index: np.ndarray, extent: int, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Which texel is read for an index that may lie outside, and whether one is read at all."""
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


def nearest_index(x: np.ndarray, extent: int, mode: str, normalized: bool) -> np.ndarray:
    """The texel at a coordinate, before the address mode, which the guide applies to the coordinate itself."""
    if not normalized:
        return np.floor(x).astype("i8")
    if mode == "wrap":
        x = x - np.floor(x)
    elif mode == "mirror":
        whole = np.floor(x)
        x = np.where(whole % 2 == 0, x - whole, 1 - (x - whole))
    index = np.floor(x * extent).astype("i8")
    # frac(x) = 0 in a mirrored part is the coordinate 1, beyond the last texel.
    return np.minimum(index, extent - 1) if mode in ("wrap", "mirror") else index


def sample(
    texels: np.ndarray,
    at: list[np.ndarray],
    *,
    address: str | tuple[str, ...] = "clamp",
    filter: str = "point",
    normalized: bool = False,
    border: tuple[float, ...] = (0, 0, 0, 0),
) -> np.ndarray:
    """`at` has the coordinates x, y and z as far as there are dimensions. The result has the shape (n, channels)."""
    modes = (address,) * 3 if isinstance(address, str) else address
    extents = texels.shape[-2::-1]
    channels = texels.shape[-1]
    outside = np.array(border[:channels], "f8").astype(texels.dtype)

    def fetch(index: list[np.ndarray]) -> np.ndarray:
        places, inside = [], np.ones(index[0].shape, bool)
        for i, extent, mode in zip(index, extents, modes, strict=False):
            place, there = texel_along(i, extent, mode)
            places.append(place)
            inside &= there
        return np.where(inside[:, None], texels[tuple(places[::-1])], outside)

    if filter == "point":
        return fetch([nearest_index(x, n, mode, normalized) for x, n, mode in zip(at, extents, modes, strict=False)])
    scaled = [(x * n if normalized else x) - 0.5 for x, n in zip(at, extents, strict=False)]
    low = [np.floor(x).astype("i8") for x in scaled]
    # 8 bits of fraction; 1.0 can be represented.
    weight = [np.floor((x - i) * 256 + 0.5) / 256 for x, i in zip(scaled, low, strict=True)]
    total = np.zeros((len(at[0]), channels))
    for corner in itertools.product((0, 1), repeat=len(at)):
        share = np.ones(len(at[0]))
        for bit, alpha in zip(corner, weight, strict=True):
            share *= alpha if bit else 1 - alpha
        total += share[:, None] * fetch([i + bit for i, bit in zip(low, corner, strict=True)])
    return total


def gather(texels: np.ndarray, x: np.ndarray, y: np.ndarray, component: int, address: str) -> np.ndarray:
    """tex2Dgather: the four texels that linear filtering would use, counter-clockwise from the lower left."""
    height, width = texels.shape[:2]
    i, j = np.floor(x - 0.5).astype("i8"), np.floor(y - 0.5).astype("i8")
    made = []
    for right, down in ((0, 1), (1, 1), (1, 0), (0, 0)):
        column, has_column = texel_along(i + right, width, address)
        row, has_row = texel_along(j + down, height, address)
        value = texels[row, column, component]
        made.append(np.where(has_column & has_row, value, 0))
    return np.stack(made, axis=1)


def cube_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The face that a direction meets, and where, from 0 to 1: the guide's table."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif ay >= az:
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2
