"""Runs real races: slow writers on another stream, and every value that is read is checked on the device.

    python tests/gpu/race.py [--rounds 100000] [--microseconds 5] [--result FILE]

It follows the two programs with which the array interface explains streams. In every round a producer spins by clock64
on its own stream before it writes; a launch that gets the array through the interface spins and reads; and the producer
overwrites it at once. A launch or an overwrite that comes too early gives a wrong value. A second program binds the
array to one stream, writes it on another by a launch, and reads it on the first, as a library that checks nothing else
does. With Bascule's ordering no value may be wrong; with sync=False there must be wrong ones, or the programs would
prove nothing. Exits with 1 otherwise.

On the emulated device (BASCULE_DEVICE=emulated) nothing spins for long and a thousand rounds are enough: operations
wait there until something forces them (BASCULE_EMULATED_SCHEDULE=lazy).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "lazy")

import numpy as np

import bascule

COUNT = 256
TEXT = """
__device__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
__global__ void write(int* x, int value, long long cycles) {
    spin(cycles);
    x[threadIdx.x] = value;
}
__global__ void judge(const int* x, int expected, long long cycles, unsigned long long* wrong) {
    spin(cycles);
    if (*(const volatile int*)(x + threadIdx.x) != expected) atomicAdd(wrong, 1ULL);
}
"""


class Foreign:
    """An array of another library that works on its own stream, which its interface names."""

    def __init__(self, array: bascule.DeviceArray, stream: bascule.Stream) -> None:
        self._fields = dict(array.__cuda_array_interface__) | {"version": 3, "stream": stream.handle}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._fields


def unordered(array: object) -> bascule.DeviceArray:
    return bascule.as_cuda_array(array, sync=False)


class Programs:
    def __init__(self, cycles: int) -> None:
        self.kernels = bascule.compile(TEXT)
        self.cycles = cycles
        self.p, self.c = bascule.stream(), bascule.stream()
        self.x = bascule.to_device(np.full(COUNT, -1, "i4"), stream=self.p)
        self.wrong = bascule.to_device(np.zeros(1, "u8"), stream=self.c)
        bascule.synchronize()

    def slow_producer(self, rounds: int, passed: Callable[[object], object]) -> None:
        """The first program: a launch reads an array that another stream is still writing."""
        write, judge = self.kernels.write, self.kernels.judge
        theirs, x = unordered(self.x), passed(Foreign(self.x, self.p))
        for value in range(rounds):
            write[1, COUNT, self.p](theirs, value, self.cycles)
            judge[1, COUNT, self.c](x, value, self.cycles, self.wrong)
            write[1, COUNT, self.p](theirs, -1, 0)

    def array_stream_and_kernel_stream(self, rounds: int, passed: Callable[[object], object]) -> None:
        """The second program: an array bound to one stream is written on another, and the host waits for nothing."""
        write, judge = self.kernels.write, self.kernels.judge
        theirs, x = unordered(self.x), passed(Foreign(self.x, self.p))
        for value in range(rounds):
            write[1, COUNT, self.c](x, value, self.cycles)
            judge[1, COUNT, self.p](theirs, value, 0, unordered(self.wrong))

    def wrong_values(self, program: str, rounds: int, *, ordered: bool) -> int:
        # Waits for the consumer's stream before its producer's, so that a lazy device runs the consumer first if
        # nothing orders the two.
        streams = (self.c, self.p) if program == "slow_producer" else (self.p, self.c)
        emulated = bascule.current_device().emulated
        with bascule.emulated.checks(races=False) if emulated else nullcontext():  # the race is intended
            self.wrong.fill(0)
            bascule.synchronize()
            getattr(self, program)(rounds, (lambda x: x) if ordered else unordered)
            for stream in streams:
                stream.synchronize()
            return int(self.wrong.copy_to_host()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts values that were read too early or overwritten too early.")
    emulated = bascule.current_device().emulated
    parser.add_argument("--rounds", type=int, default=1_000 if emulated else 100_000)
    parser.add_argument("--microseconds", type=float, default=0.01 if emulated else 5.0, help="that a writer spins")
    parser.add_argument("--result", type=Path, help="where to write what was found, as JSON")
    options = parser.parse_args()

    programs = Programs(int(options.microseconds * 1500))  # cycles at about 1.5 GHz
    result: dict[str, Any] = {"device": bascule.current_device().name, "rounds": options.rounds}
    good = True
    for program in ("slow_producer", "array_stream_and_kernel_stream"):
        start = time.monotonic()
        ordered = programs.wrong_values(program, options.rounds, ordered=True)
        left_alone = programs.wrong_values(program, min(options.rounds, 10_000), ordered=False)
        result[program] = {"wrong": ordered, "wrong with sync=False": left_alone}
        good = good and ordered == 0 and left_alone > 0
        print(
            f"{program}: {ordered} wrong values in {options.rounds} rounds, "
            f"{left_alone} with sync=False ({time.monotonic() - start:.1f} s)"
        )
    if options.result:
        options.result.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
