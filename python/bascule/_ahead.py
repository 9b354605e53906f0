"""`prepare_async`: compiling and loading in threads, for programs of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bascule import _bascule

# In a thread of asyncio's own, with the caller's context: the current device and stream are part of it.
in_thread = asyncio.to_thread


async def prepare_kernel(
    kernel: _bascule.Kernel, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> _bascule.Kernel:
    """`kernel.prepare` in a thread."""
    return await in_thread(kernel.prepare, *arguments, **keywords)


async def prepare_module(module: _bascule.Module, instances: dict[str, Sequence[Any]] | None) -> _bascule.Module:
    """Every kernel of the module that is not a template, and these instances, in a thread."""

    def prepare() -> _bascule.Module:
        wanted: list[_bascule.Kernel] = []
        if instances is not None:
            wanted += [kernel for kernels in module.instantiate(instances).values() for kernel in kernels]
        wanted += [module[name] for name in names_of(module)]
        for kernel in wanted:
            if not kernel.is_template:
                kernel.prepare()
        return module

    return await in_thread(prepare)


def names_of(module: _bascule.Module) -> list[str]:
    """The kernels' names, also where one of them is called `kernels`."""
    read: Callable[[_bascule.Module], list[str]] = type(module).kernels.__get__
    return read(module)
