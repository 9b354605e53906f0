from __future__ import annotations

from dataclasses import dataclass

import bascule


@dataclass
class EventOptions:
    timing_enabled: bool = False
    blocking_sync: bool = False


class Event:
    def __init__(self) -> None:
        self.event = bascule.Event()
        self.is_timing_enabled = False

    @classmethod
    def made(cls, options: EventOptions | None) -> Event:
        made = cls.__new__(cls)
        made.is_timing_enabled = bool(options and options.timing_enabled)
        made.event = bascule.event(timing=made.is_timing_enabled)
        return made

    def sync(self) -> None:
        self.event.synchronize()

    @property
    def is_done(self) -> bool:
        return self.event.query()

    @property
    def device(self) -> object:
        from cuda.core._device import Device

        return Device(self.event.device.ordinal)

    def __sub__(self, earlier: Event) -> float:
        return earlier.event.elapsed(self.event)
