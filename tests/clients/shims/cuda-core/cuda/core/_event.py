from __future__ import annotations

from dataclasses import dataclass

import bascule


@dataclass
class EventOptions:
    enable_timing: bool = False
    busy_waited_sync: bool = False


class Event:
    def __init__(self) -> None:
        self.event = bascule.Event()
        self.is_timing_disabled = True

    @classmethod
    def made(cls, options: EventOptions | None) -> Event:
        made = cls.__new__(cls)
        made.is_timing_disabled = not (options and options.enable_timing)
        made.event = bascule.event(timing=not made.is_timing_disabled)
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
