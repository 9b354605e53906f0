from __future__ import annotations

import ctypes
import os
from collections import namedtuple
from typing import Any, ClassVar

from cuda.bindings import driver

import bascule

ParamInfo = namedtuple("ParamInfo", "offset size")
MaxPotentialBlockSize = namedtuple("MaxPotentialBlockSize", "min_grid_size max_block_size")


class KernelAttributes:
    """A kernel's attributes. cuda.core has them per device, Bascule for the current device."""

    NAMES: ClassVar = {
        "binary_version": "binary_version",
        "cache_mode_ca": "caches_globals_in_l1",
        "cluster_size_must_be_set": "needs_cluster",
        "const_size_bytes": "constant_bytes",
        "local_size_bytes": "local_bytes",
        "max_dynamic_shared_size_bytes": "max_dynamic_shared_bytes",
        "max_threads_per_block": "max_threads_per_block",
        "non_portable_cluster_size_allowed": "non_portable_cluster",
        "num_regs": "registers",
        "ptx_version": "ptx_version",
        "shared_size_bytes": "static_shared_bytes",
    }

    def __init__(self, kernel: bascule.Kernel) -> None:
        self.kernel = kernel

    def __getattr__(self, name: str) -> Any:
        if name not in self.NAMES:
            raise AttributeError(name)
        return getattr(self.kernel.attributes, self.NAMES[name])

    def __getitem__(self, device: Any) -> KernelAttributes:
        return self

    @property
    def preferred_shared_memory_carveout(self) -> int:
        carveout = self.kernel.attributes.shared_carveout
        return -1 if carveout is None else carveout

    def required_cluster(self) -> tuple[int, int, int]:
        return self.kernel.attributes.cluster or (0, 0, 0)

    @property
    def required_cluster_width(self) -> int:
        return self.required_cluster()[0]

    @property
    def required_cluster_height(self) -> int:
        return self.required_cluster()[1]

    @property
    def required_cluster_depth(self) -> int:
        return self.required_cluster()[2]


class KernelOccupancy:
    def __init__(self, kernel: bascule.Kernel) -> None:
        self.kernel = kernel

    def max_active_blocks_per_multiprocessor(self, block_size: int, dynamic_shared_memory_size: int) -> int:
        return self.kernel.occupancy(block_size, dynamic_shared_memory_size).blocks

    def max_potential_block_size(self, dynamic_shared_memory_needed: Any, block_size_limit: int) -> Any:
        needed = dynamic_shared_memory_needed
        if isinstance(needed, driver.CUoccupancyB2DSize):
            needed = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(needed.getPtr())
        block = self.kernel.best_block(needed, limit=block_size_limit or None)
        shared_bytes = needed(block) if callable(needed) else needed
        return MaxPotentialBlockSize(self.kernel.occupancy(block, shared_bytes).grid, block)

    def available_dynamic_shared_memory_per_block(self, num_blocks_per_multiprocessor: int, block_size: int) -> int:
        return self.kernel.shared_bytes_for(num_blocks_per_multiprocessor, block_size)


class Kernel:
    def __init__(self, kernel: bascule.Kernel | None = None) -> None:
        self.kernel = bascule.Kernel() if kernel is None else kernel

    @property
    def attributes(self) -> KernelAttributes:
        return KernelAttributes(self.kernel)

    @property
    def occupancy(self) -> KernelOccupancy:
        return KernelOccupancy(self.kernel)

    @property
    def num_arguments(self) -> int:
        return len(self.kernel.parameter_layout)

    @property
    def arguments_info(self) -> list[Any]:
        return [ParamInfo(*info) for info in self.kernel.parameter_layout]


def loader_of(code_type: str) -> Any:
    def load(cls: Any, code: Any, *, name: str = "", symbol_mapping: Any = None) -> ObjectCode:
        return cls._from(code_type, code, name, symbol_mapping)

    return classmethod(load)


class ObjectCode:
    """A Bascule module, and the lowered names of its name expressions (`names`)."""

    def __init__(self, module: bascule.Module, code_type: str, code: Any, *, name: str = "", names: Any = None) -> None:
        self.module = module
        self.code_type = code_type
        self.code = code
        self.name = name
        self.symbol_mapping = names or {}
        self.is_loaded = False

    @classmethod
    def _from(cls, code_type: str, code: Any, name: str, symbol_mapping: Any) -> ObjectCode:
        code = os.fspath(code) if isinstance(code, os.PathLike) else code
        made = cls(bascule.load_module(code), code_type, code, name=name, names=symbol_mapping)
        made.is_loaded = True
        return made

    from_ptx = loader_of("ptx")
    from_cubin = loader_of("cubin")
    from_ltoir = loader_of("ltoir")
    from_fatbin = loader_of("fatbin")
    from_object = loader_of("object")
    from_library = loader_of("library")

    def get_kernel(self, name: str | bytes) -> Kernel:
        name = os.fsdecode(name)
        if self.is_loaded:
            name = os.fsdecode(self.symbol_mapping.get(name, name))
        return Kernel(self.module[name].prepare())
