from __future__ import annotations

import functools
import re
import threading
from collections import namedtuple
from typing import Any

from cuda.bindings import driver
from cuda.core._event import Event, EventOptions
from cuda.core._memory import Buffer, DeviceMemoryResource
from cuda.core._stream import Stream, StreamOptions
from cuda.core._utils.cuda_utils import handle_return
from cuda.core.graph import GraphBuilder, end_captures

import bascule

_tls = threading.local()
ComputeCapability = namedtuple("ComputeCapability", "major minor")


class DeviceProperties:
    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def __getattr__(self, name: str) -> int:
        """Returns the driver's attribute, because Bascule has few attributes of devices."""
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}")
        return handle_return(driver.cuDeviceGetAttribute(attribute, self.ordinal))


@functools.cache
def only_device(kind: type[Device], ordinal: int) -> Device:
    made = object.__new__(kind)
    made.device_id = ordinal
    made.properties = DeviceProperties(ordinal)
    return made


class Device:
    """A device; there is one object per ordinal."""

    device_id: int
    properties: DeviceProperties

    def __new__(cls, ordinal: int = 0) -> Device:
        return only_device(cls, ordinal)

    @classmethod
    def get_all_devices(cls) -> tuple[Device, ...]:
        return tuple(map(cls, range(bascule.device_count())))

    def set_current(self) -> None:
        """Ends captures left by the test before. Selects nothing: a launch is on the device of its stream or arrays."""
        end_captures()

    def sync(self) -> None:
        bascule.synchronize()

    @property
    def arch(self) -> str:
        return re.sub("[a-z_]+", "", bascule.device(self.device_id).arch)

    @property
    def compute_capability(self) -> ComputeCapability:
        return ComputeCapability(*divmod(int(self.arch), 10))

    @property
    def memory_resource(self) -> DeviceMemoryResource:
        return DeviceMemoryResource(self)

    def allocate(self, size: int, stream: Stream | None = None) -> Buffer:
        return self.memory_resource.allocate(size, stream)

    def create_stream(self, obj: Any = None, options: Any = None) -> Stream:
        if obj is not None:
            return Stream.of(bascule.external_stream(obj))
        return Stream._init(options, self.device_id)

    def create_event(self, options: EventOptions | None = None) -> Event:
        return Event.made(options)

    def create_graph_builder(self) -> GraphBuilder:
        return GraphBuilder()

    @property
    def default_stream(self) -> Stream:
        return Stream.of(bascule.default_stream())


__all__ = ["Device", "DeviceProperties", "StreamOptions", "_tls"]
