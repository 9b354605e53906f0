from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuda.bindings import driver
from cuda.core._event import Event, EventOptions

import bascule


@dataclass
class StreamOptions:
    nonblocking: bool = True
    priority: int | None = None


class Stream:
    is_nonblocking = True  # like all streams that Bascule makes

    def __init__(self) -> None:
        self.stream = bascule.Stream()

    @classmethod
    def of(cls, stream: bascule.Stream) -> Any:
        made = cls.__new__(cls)
        made.stream = stream
        return made

    @classmethod
    def _init(cls, options: Any, device_id: int) -> Any:
        options = StreamOptions(**options) if isinstance(options, dict) else options or StreamOptions()
        with bascule.device(device_id):
            return cls.of(bascule.stream(priority=options.priority or 0))

    @classmethod
    def from_handle(cls, handle: int) -> Any:
        return cls.of(bascule.external_stream(handle))

    @classmethod
    def _legacy_default(cls) -> Any:
        return cls.of(bascule.legacy_default_stream())

    @classmethod
    def _per_thread_default(cls) -> Any:
        return cls.of(bascule.per_thread_default_stream())

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.stream.__cuda_stream__()

    @property
    def handle(self) -> driver.CUstream:
        return driver.CUstream(self.stream.handle)

    @property
    def priority(self) -> int:
        return self.stream.priority

    @property
    def device(self) -> object:
        from cuda.core._device import Device

        return Device(self.stream.device.ordinal)

    def close(self) -> None:
        """Does nothing: Bascule's stream is destroyed with its last reference."""

    def sync(self) -> None:
        self.stream.synchronize()

    def record(self, event: Event | None = None, options: EventOptions | None = None) -> Event:
        event = event or Event.made(options)
        event.event.record(self.stream)
        return event

    def wait(self, event_or_stream: Any) -> None:
        if isinstance(event_or_stream, Stream):
            event_or_stream = event_or_stream.record()
        self.stream.wait(getattr(event_or_stream, "event", event_or_stream))

    def create_graph_builder(self) -> object:
        from cuda.core.graph import GraphBuilder

        return GraphBuilder()

    def __eq__(self, other: object) -> bool:
        return self.stream == other.stream if isinstance(other, Stream) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.stream)


def Stream_accept(given: Any, allow_stream_protocol: bool = False) -> Any:  # noqa: N802
    if isinstance(given, Stream):
        return given
    if allow_stream_protocol and hasattr(given, "__cuda_stream__"):
        return Stream.of(bascule.external_stream(given))
    raise TypeError(f"a stream was expected, not {type(given).__name__}")


LEGACY_DEFAULT_STREAM = Stream._legacy_default()
PER_THREAD_DEFAULT_STREAM = Stream._per_thread_default()
