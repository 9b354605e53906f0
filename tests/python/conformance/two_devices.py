"""Runs the cases of row 60 in a process that has two devices, and prints each outcome as JSON."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import bascule
from bascule import emulated

from .cases import CASES, Case
from .driver import Memory, current
from .producers import Producer

KERNEL = """
__global__ void add(const float* p, const float* q, float* out) { out[threadIdx.x] = p[threadIdx.x] + q[threadIdx.x]; }
"""
COUNT = 32


def outcome_of(
    case: Case, version: int, kernel: bascule.Kernel, memories: dict[tuple[int, int], Memory], launches: bool
) -> Any:
    """Returns [outcome, message, operations]; checks the sum if the arguments were accepted and launched."""
    chosen = [memories[device, place] for place, device in enumerate(case.placed)]
    for number, memory in enumerate(chosen):
        memory.write(np.full(COUNT, number + 1, "f4"))
    descriptors = [
        {"shape": (COUNT,), "typestr": "<f4", "data": (memory.address, False), "version": version} for memory in chosen
    ]
    arguments = [Producer(lambda fields=fields: fields) for fields in descriptors]
    stream = None
    if case.launched_on is not None:
        with current(case.launched_on):
            stream = bascule.stream()
    with emulated.trace() as operations:
        try:
            if launches:
                kernel[1, COUNT, stream](*arguments)
            else:
                kernel.prepare(*arguments)
        except bascule.ArgumentError as error:
            return [
                "ValueError" if isinstance(error, ValueError) else type(error).__name__,
                str(error),
                len(operations),
            ]
    if launches and not (chosen[2].read(np.dtype("f4"), COUNT) == 3).all():
        return ["accepted", "and the sum is wrong", len(operations)]
    return ["accepted", f"read {[argument.reads for argument in arguments]} times", len(operations)]


def main() -> None:
    launches = "BASCULE_MUTANT" not in os.environ  # a mutant might accept anything, so it launches nothing
    memories = {(device, place): Memory("device", device) for device in (0, 1) for place in range(3)}
    kernel = bascule.compile(KERNEL).add.prepare()
    cases = [case for case in CASES if case.placed]
    print(
        json.dumps(
            {
                case.gives: {
                    str(version): outcome_of(case, version, kernel, memories, launches) for version in case.versions
                }
                for case in cases
            }
        )
    )


if __name__ == "__main__":
    main()
