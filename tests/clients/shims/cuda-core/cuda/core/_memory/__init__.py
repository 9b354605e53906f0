"""Buffers, which are Bascule arrays of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bascule


@dataclass
class DeviceMemoryResourceOptions:
    max_size: int = 0
    ipc_enabled: bool = False


PinnedMemoryResourceOptions = ManagedMemoryResourceOptions = DeviceMemoryResourceOptions


class Buffer:
    """An array of bytes."""

    def __init__(self, array: bascule.DeviceArray, resource: MemoryResource) -> None:
        self.array = array
        self.memory_resource = resource

    @property
    def handle(self) -> int:
        return self.array.__cuda_array_interface__["data"][0]

    @property
    def size(self) -> int:
        return self.array.nbytes

    def copy_to(self, other: Buffer, *, stream: Any) -> None:
        other.copy_from(self, stream=stream)

    def copy_from(self, other: Buffer, *, stream: Any) -> None:
        with stream.stream:
            self.array[...] = other.array

    def close(self, stream: Any = None) -> None:
        self.array = None

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class MemoryResource:
    is_host_accessible = False
    is_device_accessible = True

    def __init__(self, device: Any = None, options: Any = None) -> None:
        self.device = device

    def array(self, size: int, stream: Any) -> bascule.DeviceArray:
        return bascule.device_array(size, "u1", stream=stream and stream.stream)

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        return Buffer(self.array(size, stream), self)


class DeviceMemoryResource(MemoryResource):
    pass


class _SynchronousMemoryResource(MemoryResource):
    pass


class PinnedMemoryResource(MemoryResource):
    is_host_accessible = True

    def array(self, size: int, stream: Any) -> bascule.DeviceArray:
        return bascule.pinned_array(size, "u1")


class LegacyPinnedMemoryResource(PinnedMemoryResource):
    pass


class ManagedMemoryResource(MemoryResource):
    is_host_accessible = True

    def array(self, size: int, stream: Any) -> bascule.DeviceArray:
        return bascule.managed_array(size, "u1")
