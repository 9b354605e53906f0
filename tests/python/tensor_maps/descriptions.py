"""Random descriptions of tensor maps, and the driver's rules for them, stated a second time.

A description is a dict of the arguments of cuTensorMapEncodeTiled, or of cuTensorMapEncodeIm2col. Lists begin with the
innermost axis. The rules are those of the CUDA driver API's documentation.
"""

from __future__ import annotations

import random
from typing import Any

Description = dict[str, Any]

# CUtensorMapDataType: the size of an element in bytes, and whether it is a float.
TYPES = [
    *((1, False), (2, False), (4, False), (4, False), (8, False), (8, False)),
    *((2, True), (4, True), (8, True), (2, True)),
]
OFFSETS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}


def fits(d: Description) -> bool:
    """Whether the description obeys every rule."""
    rank, size = d["rank"], d["itemsize"]
    slices, swizzle = d["interleave"], d["swizzle"]
    if not (3 if slices or d["is_im2col"] else 1) <= rank <= 5:
        return False
    if slices not in (0, 16, 32) or swizzle not in (0, 32, 64, 128) or d["l2_promotion"] not in (0, 64, 128, 256):
        return False
    unit = max(16, slices)
    inner = (d["channels"] if d["is_im2col"] else d["box"][0]) * size
    strides = d["strides"][: rank - 1]
    steps = d["element_strides"][0 if slices else 1 : rank]
    return all(
        (
            not d["nan"] or d["floating"],
            d["address"] % unit == 0,
            all(1 <= extent <= 2**31 for extent in d["extents"][:rank]),
            all(stride % unit == 0 and stride < 2**40 for stride in strides),
            all(1 <= step <= 8 for step in steps),
            slices != 32 or swizzle == 32,
            bool(slices) or inner % 16 == 0,
            bool(slices) or not swizzle or inner <= swizzle,
            fits_im2col(d) if d["is_im2col"] else all(1 <= extent <= 256 for extent in d["box"][:rank]),
        )
    )


def fits_im2col(d: Description) -> bool:
    most, axes = OFFSETS[d["rank"]], range(d["rank"] - 2)
    corners = [(d["lower"][axis], d["upper"][axis]) for axis in axes]
    return (
        1 <= d["channels"] <= 256
        and 1 <= d["pixels"] <= 1024
        and all(-most <= offset < most for corner in corners for offset in corner)
        and all(d["extents"][axis + 1] + upper - lower > 0 for axis, (lower, upper) in zip(axes, corners, strict=True))
    )


def random_description(chosen: random.Random, address: int) -> Description:
    """A description that breaks few rules: about half of them break none. `address` is a multiple of 256."""

    def rarely(usual: Any, other: Any) -> Any:
        return other() if chosen.random() < 0.02 else usual

    kind = chosen.randrange(len(TYPES))
    size, floating = TYPES[kind]
    is_im2col = chosen.random() < 0.3
    slices = chosen.choice([0, 0, 0, 16, 32])
    rank = rarely(chosen.randint(3 if slices or is_im2col else 1, 5), lambda: chosen.randint(1, 5))
    unit = max(16, slices)
    swizzle = 32 if slices == 32 and chosen.random() < 0.9 else chosen.choice([0, 32, 64, 128])
    row = chosen.randint(1, (swizzle or 256) // 16) * 16 // size
    extents = [rarely(chosen.randint(1, 5000), lambda: chosen.choice([0, 2**31, 2**33])) for _ in range(5)]
    strides = [
        rarely(chosen.randint(1, 1 << 20) * unit, lambda: chosen.choice([8, 24, 48, 2**40, 2**40 - 32]))
        for _ in range(4)
    ]
    most = OFFSETS.get(rank, 1 << 15)
    return {
        "type": kind,
        "itemsize": size,
        "floating": floating,
        "rank": rank,
        "address": address + rarely(0, lambda: chosen.choice([1, 8, 16, 32])),
        "extents": extents,
        "strides": strides,
        "box": [rarely(row, lambda: chosen.randint(0, 300))]
        + [rarely(chosen.randint(1, 256), lambda: chosen.choice([0, 257, 1000])) for _ in range(4)],
        "element_strides": [rarely(1 if chosen.random() < 0.8 else chosen.randint(1, 8), lambda: chosen.choice([0, 9]))]
        + [rarely(chosen.randint(1, 8), lambda: chosen.choice([0, 9])) for _ in range(4)],
        "swizzle": swizzle,
        "interleave": slices,
        "l2_promotion": chosen.choice([0, 64, 128, 256]),
        "nan": rarely(floating and chosen.random() < 0.5, lambda: True),
        "is_im2col": is_im2col,
        "channels": rarely(min(row, 256), lambda: chosen.choice([0, 3, 257])),
        "pixels": rarely(chosen.randint(1, 1024), lambda: chosen.choice([0, 1025])),
        "lower": [rarely(chosen.randint(-most, 0), lambda: chosen.choice([-most - 1, most])) for _ in range(3)],
        "upper": [rarely(chosen.randint(0, most - 1), lambda: chosen.choice([-most, most])) for _ in range(3)],
    }
