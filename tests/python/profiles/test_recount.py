"""Counts of kernels that read their addresses from arrays, against an independent count of the same addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bascule
from bascule.emulated import KernelProfile, Profile, profile

from .conftest import line_of
from .test_counts import BYTES, buffer, raw

pytestmark = pytest.mark.usefixtures("emulated")

WARP, BLOCK, THREADS = 32, 96, 288
Array = np.ndarray[Any, Any]


def patterns(rng: np.random.Generator, most: int) -> Iterator[tuple[Array, Array]]:
    """Indices below `most`, and the threads that use them."""
    scattered = rng.integers(0, most, THREADS)
    clustered = (rng.integers(0, most, THREADS // 4).repeat(4) + rng.integers(0, 4, THREADS)) % most
    in_few_banks = rng.integers(0, most // 16, THREADS) * 16
    for index in (scattered, clustered, in_few_banks, rng.integers(0, 3, THREADS)):
        for share in (1.0, 0.5, 0.05):
            yield index.astype("i4"), (rng.random(THREADS) < share).astype("i4")


def warps(index: Array, on: Array) -> Iterator[Array]:
    """The indices of the active lanes of each warp in which any lane is active."""
    for first in range(0, THREADS, WARP):
        used = index[first : first + WARP][on[first : first + WARP] != 0]
        if used.size:
            yield used


def conflicts_of_warp(index: Array, on: Array, bytes: int) -> int:
    """Counts for each bank the different words that lanes of one part of a warp need."""
    together = min(WARP, WARP * 4 // bytes)
    conflicts = 0
    for first in range(0, WARP, together):
        lanes = [lane for lane in range(first, first + together) if on[lane]]
        words = {(int(index[lane]) * bytes + byte) // 4 for lane in lanes for byte in range(0, bytes, min(bytes, 4))}
        per_bank = np.bincount([word % 32 for word in words], minlength=32)
        conflicts += max(int(per_bank.max()) - 1, 0)
    return conflicts


def profiles_of(launch: Callable[..., None], index: Array, on: Array) -> tuple[Profile, KernelProfile, KernelProfile]:
    """The profile of a launch, its only kernel, and the kernel when no thread reads an index."""
    with profile() as without:
        launch(bascule.to_device(index), bascule.zeros(THREADS, "i4"))
    with profile() as taken:
        launch(bascule.to_device(index), bascule.to_device(on))
    (kernel,), (none,) = taken.kernels.values(), without.kernels.values()
    return taken, kernel, none


@pytest.mark.parametrize("type", ["char", "short", "float", "double", "float4"])
def test_sectors_of_random_addresses(kernels, rng, type):
    x, y = buffer(4096, type), buffer(THREADS, type)
    gather = kernels.gather.instantiate(type)[THREADS // BLOCK, BLOCK]
    for index, on in patterns(rng, 4096):
        taken, kernel, none = profiles_of(functools.partial(gather, raw(y), raw(x)), index, on)
        sectors = [np.unique(used.astype("i8") * BYTES[type] // 32).size for used in warps(index, on)]
        assert kernel.global_loads - none.global_loads == 2 * len(sectors)  # an index and an element
        of_indices = line_of(taken, "index").global_load_sectors if sectors else 0
        assert kernel.global_load_sectors - none.global_load_sectors - of_indices == sum(sectors)


@pytest.mark.parametrize("type", ["char", "short", "float", "double", "float4"])
def test_bank_conflicts_of_random_addresses(kernels, rng, type):
    y = buffer(THREADS, type)
    gather = kernels.gather_in_shared.instantiate(type)[THREADS // BLOCK, BLOCK]
    for index, on in patterns(rng, 512):
        _, kernel, none = profiles_of(functools.partial(gather, raw(y)), index, on)
        expected = sum(
            conflicts_of_warp(index[first : first + WARP], on[first : first + WARP], BYTES[type])
            for first in range(0, THREADS, WARP)
        )
        assert kernel.shared_requests - none.shared_requests == len(list(warps(index, on)))
        assert kernel.bank_conflicts - none.bank_conflicts == expected


def test_contention_of_random_atomics(kernels, rng):
    to = buffer(512)
    for index, on in patterns(rng, 512):
        launch = functools.partial(kernels.count_at[THREADS // BLOCK, BLOCK], raw(to))
        _, kernel, none = profiles_of(launch, index, on)
        used = list(warps(index, on))
        assert (kernel.global_atomics, none.global_atomics) == (len(used), 0)
        assert kernel.atomic_conflicts == sum(each.size - np.unique(each).size for each in used)
        assert kernel.global_atomic_sectors == sum(np.unique(each // 8).size for each in used)
