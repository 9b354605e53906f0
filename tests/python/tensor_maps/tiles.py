"""Tensor maps, the kernels that copy by them, and what the manual says of tiles: "Tensors" in the PTX ISA.

The references here look each element up alone, and each chunk of 16 bytes in the manual's tables of swizzles.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

import bascule

# The values of CUtensorMapDataType, with NumPy's type for the bits.
ELEMENTS = {
    "u8": (0, "u1"),
    "u16": (1, "u2"),
    "u32": (2, "u4"),
    "s32": (3, "i4"),
    "u64": (4, "u8"),
    "s64": (5, "i8"),
    "f16": (6, "f2"),
    "f32": (7, "f4"),
    "f64": (8, "f8"),
    "bf16": (9, "u2"),
    "f32_ftz": (10, "f4"),
    "tf32": (11, "f4"),
    "tf32_ftz": (12, "f4"),
}
FLOATS = {"f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"}
POISON = 0xFF
OUTSIDE_NAN = b"\xf7\x7f"  # every two bytes of an element outside of a tensor that fills with NaN

# "The pattern of the destination data layout": a line of 128 bytes in shared memory holds these chunks of 16 bytes.
SWIZZLES = {
    32: ["01234567", "10325476"],
    64: ["01234567", "10325476", "23016745", "32107654"],
    128: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
}


@dataclasses.dataclass
class Map:
    """A tensor map. Dimension 0 is the innermost, and sizes are in elements, except strides, which are in bytes."""

    element: str
    extents: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int] = ()
    steps: Sequence[int] | None = None
    swizzle: int = 0
    interleave: int = 0  # bytes of a slice
    nan: bool = False
    # For im2col, instead of the box; the corners are in the order width, height, depth.
    lower: Sequence[int] = ()
    upper: Sequence[int] = ()
    channels: int = 0
    pixels: int = 0

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def size(self) -> int:
        return np.dtype(ELEMENTS[self.element][1]).itemsize

    def step(self, dimension: int) -> int:
        return 1 if self.steps is None else self.steps[dimension]

    @property
    def row(self) -> int:
        """Bytes of a row of the tile, which has one slice of an interleaved tensor."""
        return self.interleave or (self.channels or self.box[0]) * self.size

    @property
    def slices(self) -> range:
        """The first element of each slice of the tile, counted from the tile's first element."""
        return range(0, self.channels or self.box[0], self.row // self.size)

    @property
    def pitch(self) -> int:
        """Bytes from one row of the tile to the next in shared memory, which a swizzle pads to its width."""
        return self.swizzle or self.row

    @property
    def rows(self) -> int:
        if self.pixels:
            return self.pixels * len(self.slices)
        pixels = int(np.prod([-(-self.box[d] // self.step(d)) for d in range(1, self.rank)], dtype=int))
        return pixels * len(self.slices)

    @property
    def bytes(self) -> int:
        """What the copy of a tile adds to its mbarrier."""
        return self.rows * self.row

    @property
    def span(self) -> int:
        """Bytes of the tile in shared memory."""
        return self.rows * self.pitch

    def encode(self, address: int) -> bytes:
        driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
        room = (ctypes.c_char * 192)()
        at = -ctypes.addressof(room) % 64
        number, _ = ELEMENTS[self.element]
        swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[self.swizzle]
        after = (self.interleave // 16, swizzle, 0, int(self.nan))
        place = ctypes.c_void_p(ctypes.addressof(room) + at)
        u64 = [(ctypes.c_uint64 * 5)(*each) for each in (self.extents, self.strides)]
        steps = (ctypes.c_uint32 * 5)(*(self.steps or [1] * self.rank))
        head = (place, number, self.rank, ctypes.c_void_p(address), *u64)
        if self.pixels:
            corners = [(ctypes.c_int * 3)(*each) for each in (self.lower, self.upper)]
            done = driver.cuTensorMapEncodeIm2col(*head, *corners, self.channels, self.pixels, steps, *after)
        else:
            done = driver.cuTensorMapEncodeTiled(*head, (ctypes.c_uint32 * 5)(*self.box), steps, *after)
        assert done == 0, (done, self)
        return bytes(room[at : at + 128])

    def offset(self, at: Sequence[int]) -> int | None:
        """Returns where an element is in the tensor's bytes, or None outside of the tensor."""
        if not all(0 <= a < extent for a, extent in zip(at, self.extents, strict=True)):
            return None
        outer = sum(a * stride for a, stride in zip(at[1:], self.strides, strict=True))
        if not self.interleave:
            return at[0] * self.size + outer
        # NC/8HWC8: slices of channels, each with all the pixels of an image.
        slice_bytes = self.strides[-2] * self.extents[-2]
        slice_number, inside = divmod(at[0] * self.size, self.interleave)
        return slice_number * slice_bytes + inside + outer

    def tile(self, start: Sequence[int]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yields row, element of the row and coordinates of each element of a tile.

        As in the tensor, the images are outermost, and the pixels are innermost in each slice.
        """
        steps = [range(0, self.box[d], self.step(d)) for d in range(1, self.rank)]
        images, pixels = steps[-1:], steps[-2::-1]
        for row, (*at,) in enumerate(itertools.product(*images, self.slices, *pixels)):
            image, (first, *pixel) = at[: len(images)], at[len(images) :]
            outer = [*reversed(pixel), *image]
            for k in range(self.row // self.size):
                yield row, k, (start[0] + first + k, *(a + b for a, b in zip(start[1:], outer, strict=True)))

    def place(self, row: int, k: int, shared: int) -> int:
        """Returns where an element is in the tile's bytes, which are at byte `shared` of shared memory."""
        at = shared + row * self.pitch + k * self.size
        if self.swizzle:
            pattern = SWIZZLES[self.swizzle]
            line, inside = divmod(at, 128)
            at = 128 * line + 16 * pattern[line % len(pattern)].index(str(inside // 16)) + inside % 16
        return at - shared

    def loaded(self, memory: np.ndarray, elements, shared: int = 0) -> np.ndarray:
        """Returns the bytes of a tile in shared memory; where it has none, they are poison."""
        made = np.full(self.span, POISON, "u1")
        for row, k, at in elements:
            offset, place = self.offset(at), self.place(row, k, shared)
            outside = OUTSIDE_NAN * (self.size // 2) if self.nan else bytes(self.size)
            value = np.frombuffer(outside, "u1") if offset is None else memory[offset : offset + self.size]
            if self.element.startswith("tf32") and offset is not None:
                value = rounded_to_tf32(value)
            made[place : place + self.size] = value
        return made

    def stored(self, memory: np.ndarray, tile: np.ndarray, elements, combine=None, shared: int = 0) -> np.ndarray:
        """Returns the tensor's bytes after a tile was written, or combined by a function of two NumPy arrays."""
        made = memory.copy()
        for row, k, at in elements:
            offset, place = self.offset(at), self.place(row, k, shared)
            if offset is None:
                continue
            old, new = made[offset : offset + self.size], tile[place : place + self.size]
            old[:] = new if combine is None else combine(old, new)
        return made


def rounded_to_tf32(value: np.ndarray) -> np.ndarray:
    number = value.view("f4")[0]
    if np.isnan(number):
        return np.array([0x7FFFE000], "u4").view("u1")
    # Rounds to 11 significant bits, to nearest with ties to even, which is how np.rint rounds.
    _, exponent = np.frexp(np.float64(number))
    if np.isinf(number) or number == 0:
        return value
    exponent = max(int(exponent), -125)
    scaled = np.ldexp(np.float64(number), 11 - exponent)
    with np.errstate(over="ignore"):
        return np.array([np.ldexp(np.rint(scaled), exponent - 11)], "f4").view("u1")


KERNELS = """
#include <cuda.h>
using u8 = unsigned char;

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void begin(unsigned barrier, int bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ void wait(unsigned barrier) {
    for (int done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier) : "memory");
}

// A tile goes to byte `shift` of shared memory, and from there to `out`.
#define LOAD(NAME, INSTRUCTION, COORDINATES, OFFSETS, ...)                                                       \\
    extern "C" __global__ void NAME(const __grid_constant__ CUtensorMap map, const int* at, u8* out, int bytes, \\
                                    int span, int shift, bool waits) {                                          \\
        extern __shared__ __align__(1024) u8 memory[];                                                          \\
        __shared__ unsigned long long arrived;                                                                  \\
        const unsigned barrier = shared_address(&arrived);                                                      \\
        if (threadIdx.x == 0) {                                                                                 \\
            begin(barrier, bytes);                                                                              \\
            asm volatile(INSTRUCTION " [%0], [%1, " COORDINATES "], [%2]" OFFSETS ";"                            \\
                         :: "r"(shared_address(memory + shift)), "l"(&map), "r"(barrier), __VA_ARGS__           \\
                         : "memory");                                                                           \\
        }                                                                                                       \\
        __syncthreads();                                                                                        \\
        if (waits) wait(barrier);                                                                               \\
        for (int i = threadIdx.x; i < span; i += blockDim.x) out[i] = memory[shift + i];                         \\
    }

// The bytes of `in` go to shared memory, and from there to a tile.
#define STORE(NAME, INSTRUCTION, COORDINATES, ...)                                                               \\
    extern "C" __global__ void NAME(const __grid_constant__ CUtensorMap map, const int* at, const u8* in,       \\
                                    int span, int shift) {                                                      \\
        extern __shared__ __align__(1024) u8 memory[];                                                          \\
        for (int i = threadIdx.x; i < span; i += blockDim.x) memory[shift + i] = in[i];                          \\
        asm volatile("fence.proxy.async;" ::: "memory");                                                        \\
        __syncthreads();                                                                                        \\
        if (threadIdx.x != 0) return;                                                                           \\
        asm volatile(INSTRUCTION " [%0, " COORDINATES "], [%1];"                                                 \\
                     :: "l"(&map), "r"(shared_address(memory + shift)), __VA_ARGS__ : "memory");                \\
        asm volatile("cp.async.bulk.commit_group;");                                                            \\
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                                               \\
    }
"""


def numbered(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + k}" for k in range(count)) + "}"


def coordinates(rank: int, offsets: int = 0) -> str:
    return ", ".join(
        [f'"r"(at[{d}])' for d in range(rank)] + [f'"h"((unsigned short)at[{rank + k}])' for k in range(offsets)]
    )


REDUCTIONS = ("add", "min", "max", "and", "or", "xor", "inc", "dec")


@functools.cache
def kernels() -> bascule.Module:
    text = KERNELS
    load = "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes"
    for rank in range(1, 6):
        text += f'LOAD(load{rank}, "{load.format(rank, "tile")}", "{numbered(3, rank)}", "", {coordinates(rank)})\n'
        text += (
            f'STORE(store{rank}, "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group",'
            f' "{numbered(2, rank)}", {coordinates(rank)})\n'
        )
    for rank in range(3, 6):
        text += (
            f'LOAD(columns{rank}, "{load.format(rank, "im2col")}", "{numbered(3, rank)}",'
            f' ", {numbered(3 + rank, rank - 2)}", {coordinates(rank, rank - 2)})\n'
            f'STORE(store_columns{rank}, "cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group",'
            f' "{numbered(2, rank)}", {coordinates(rank)})\n'
        )
    for name in REDUCTIONS:
        text += (
            f'STORE(reduce_{name}, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{name}.tile.bulk_group",'
            f' "{numbered(2, 2)}", {coordinates(2)})\n'
        )
    return bascule.compile(text)


def address_of(array) -> int:
    return array.__cuda_array_interface__["data"][0]


def load(map: Map, memory, at: Sequence[int], shift: int = 0, waits: bool = True, columns: bool = False) -> np.ndarray:
    """Returns the bytes of a tile after its copy to byte `shift` of shared memory."""
    out = bascule.to_device(np.zeros(map.span, "u1"))
    kernel = getattr(kernels(), f"{'columns' if columns else 'load'}{map.rank}")
    encoded = bascule.raw_bytes(map.encode(address_of(memory)))
    kernel[1, 32, None, shift + map.span](
        encoded, bascule.to_device(np.array(at, "i4")), out, map.bytes, map.span, shift, waits
    )
    return out.copy_to_host()


def store(name: str, map: Map, memory, at: Sequence[int], tile: np.ndarray, shift: int = 0) -> None:
    encoded = bascule.raw_bytes(map.encode(address_of(memory)))
    getattr(kernels(), name)[1, 32, None, shift + map.span](
        encoded, bascule.to_device(np.array(at, "i4")), bascule.to_device(tile), map.span, shift
    )
