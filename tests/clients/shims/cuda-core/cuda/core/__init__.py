"""cuda.core's names on Bascule, as far as cuda.core's tests of programs, launches, streams and graphs use them.

It only maps names: texts of cuda.core, and handles of objects that Bascule does not have, are missing.
Tests that call the driver by cuda.bindings find the same emulated device, because the suite runs by `bascule emulate`.
"""

from __future__ import annotations

from cuda.core import _device, _event, _linker, _module, _program, _stream
from cuda.core._device import Device
from cuda.core._event import Event, EventOptions
from cuda.core._launch_config import LaunchConfig
from cuda.core._launcher import launch
from cuda.core._linker import Linker, LinkerOptions
from cuda.core._memory import (
    Buffer,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from cuda.core._module import Kernel, ObjectCode
from cuda.core._program import Program, ProgramOptions
from cuda.core._stream import Stream, StreamOptions
from cuda.core.graph import Graph, GraphBuilder

__all__ = [
    "Buffer",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "Event",
    "EventOptions",
    "Graph",
    "GraphBuilder",
    "Kernel",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "Linker",
    "LinkerOptions",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryResource",
    "ObjectCode",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Program",
    "ProgramOptions",
    "Stream",
    "StreamOptions",
    "_device",
    "_event",
    "_linker",
    "_module",
    "_program",
    "_stream",
    "launch",
]
