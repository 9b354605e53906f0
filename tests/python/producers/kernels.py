"""Passes an array (from a committed dict, or live) through kernels that read and write it; compares with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bascule
from producers.catalogue import Export
from producers.elements import ELEMENTS, Element, Programs

GRID, BLOCK = 2, 64


def values_of(export: Export, rng: np.random.Generator) -> np.ndarray:
    element = ELEMENTS[export.values["dtype"]]
    return np.asarray(element.values(rng, tuple(export.values["shape"])), element.dtype)


def programs_for(exports: list[Export]) -> Programs:
    """The kernels that these exports need, compiled once."""
    rng = np.random.default_rng(0)
    return Programs(
        (export.values["dtype"], export.host_view(values_of(export, rng)).ndim)
        for export in exports
        if export.interface is not None
    )


def read_through_kernels(
    programs: Programs,
    element: Element,
    view: np.ndarray,
    array: Any,
    *,
    stream: Any = None,
    before: Callable[[], None] = lambda: None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Launches kernels that read `array`, whose layout is that of `view`; returns pairs (result, expected).

    `before` is called when all else is ready, so that the launches are the first to wait for what it starts.
    """
    launches = [
        (programs[kernel], bascule.to_device(np.full(max(1, view.nbytes), 0xEE, "u1")), element.expected(in_order))
        for kernel, in_order in kernels_that_read(element, view)
    ]
    bascule.synchronize()
    before()
    for kernel, out, _ in launches:
        count = (view.size,) if kernel.name.endswith("flat") else ()
        # The output is passed without a stream, so that the launch waits at most for the producer's.
        given = bascule.as_cuda_array(array).ravel("K") if count and not view.flags.c_contiguous else array
        kernel[GRID, BLOCK, stream](given, bascule.as_cuda_array(out, sync=False), *count)
        if stream is not None:
            stream.synchronize()  # only this stream: work that it did not wait for has not run
    bascule.synchronize()
    return [(out.copy_to_host()[: view.nbytes].view(element.dtype), expected) for _, out, expected in launches]


def kernels_that_read(element: Element, view: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Pairs of a kernel's name and the elements in the order in which it reads them."""
    rows = view.reshape(-1)
    fitting = [(f"{element.name}_view{view.ndim}", rows)] if view.ndim else []
    if view.flags.c_contiguous:
        fitting.append((f"{element.name}_flat", rows))
    elif view.flags.f_contiguous:
        fitting.append((f"{element.name}_flat", view.ravel("K")))
    return fitting


def write_through_a_kernel(programs: Programs, element: Element, view: np.ndarray, array: Any) -> None:
    """Launches the kernel that changes every element in place."""
    if view.ndim:
        programs[f"{element.name}_view{view.ndim}_in_place"][GRID, BLOCK](array)
    else:
        programs[f"{element.name}_flat_in_place"][GRID, BLOCK](array, 1)
    bascule.synchronize()


def same(got: np.ndarray, expected: np.ndarray) -> bool:
    """True if values are equal; the padding of structures is ignored."""
    return got.dtype == expected.dtype and got.shape == expected.shape and bool(np.all(got == expected))
