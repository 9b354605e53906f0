"""Omits every record and every wait of every scenario, one at a time: the race detector must notice.

For each mutant, a reference (happens_before.py) determines whether operations that touch the same bytes are still
ordered. The detector must report exactly those mutants in which they are not. The others are equivalent to the
original program, and are listed with the path that makes the record or wait redundant. Exits with 1 if the two
disagree or if nothing was compared; without arguments, also if more than one mutant in twenty is equivalent, or
if there are fewer than 50 scenarios or 500 other mutants.

    python tests/python/ordering/mutation.py [SCENARIO ...]
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from pathlib import Path

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ["BASCULE_EMULATED_DEVICES"] = "2"
os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "lazy")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from happens_before import Order, Step, conflicts, races, why_nothing_is_lost
from scenarios_by_hand import SCENARIOS
from scene import Scene, kernels, release_owners

import bascule

Pairs = list[tuple[int, int]]  # pairs of conflicting steps

NOTHING = 2**64 - 1  # drops no operation
ALL = {
    name if devices == 1 else f"{name}_on_two_devices": (scenario.run, devices)
    for name, scenario in SCENARIOS.items()
    for devices in scenario.devices
}
WORK = ("launch", "copy", "fill", "graph launch")  # operations that touch memory
LEAST_SCENARIOS = 50
LEAST_MUTANTS = 500
MOST_EQUIVALENT = 0.05


def drop_operation(number: int) -> None:
    """Makes the emulated device ignore the record or wait of this number; see emulated_abi.h."""
    emulator = ctypes.CDLL(str(Path(bascule.__file__).parent / "libbascule_emulator.so"))
    emulator.bascule_emulated_drop(ctypes.c_uint64(number))


def run(name: str, dropped: int = NOTHING) -> tuple[list[str], list[Step]]:
    """Returns the races that the detector reports, and the issued operations, after waiting for all of them.

    A mutant touches the same bytes as its scenario: they are not computed again.
    """
    program, devices = ALL[name]
    scene = Scene(devices, notes_bytes=dropped == NOTHING)
    reported: list[str] = []
    operations: list[bascule.emulated.Operation] = []
    try:
        with bascule.emulated.checks(races=True), bascule.emulated.trace() as operations:
            drop_operation(dropped)
            program(scene)
    except bascule.RaceError as error:
        reported = error.races
    finally:
        drop_operation(NOTHING)
        release_owners(devices)
    return reported, steps_of(operations, scene)


def steps_of(operations: list[bascule.emulated.Operation], scene: Scene) -> list[Step]:
    threads = [0] * len(operations)
    touched = [(frozenset(), frozenset())] * len(operations)
    for touch in reversed(scene.touches):  # of nested `touching` blocks the inner one is noted first
        for number in range(touch.start, touch.end):
            threads[number] = touch.thread
            if operations[number].kind in WORK:
                touched[number] = (touch.reads, touch.writes)
    return [
        Step(o.kind, o.stream, o.event, o.name, thread, reads, writes, o.device)
        for o, thread, (reads, writes) in zip(operations, threads, touched, strict=True)
        if o.kind in (*WORK, "record", "wait", "synchronize")  # without allocations and frees
    ]


class Tally:
    def __init__(self) -> None:
        self.scenarios = self.mutants = self.reported = 0
        self.equivalent: list[str] = []
        self.wrong: list[str] = []

    def try_scenario(self, name: str) -> None:
        run(name)  # loads and compiles what it needs
        reported, steps = run(name)
        pairs = conflicts(steps)
        full = Order(steps)
        self.scenarios += 1
        if reported or races(full, pairs):
            self.wrong.append(f"{name}: races although nothing is left out:\n{chr(10).join(reported)}")
            return
        issued = [number for number, step in enumerate(steps) if step.kind in ("record", "wait")]
        for count, number in enumerate(issued):
            mutant = f"{name}, operation {count} of {len(issued)} ({steps[number]})"
            found, same = run(name, count)
            self.mutants += 1
            if [step.kind for step in same] != [step.kind for step in steps]:
                self.wrong.append(f"{mutant}: the program does not issue the same operations every time")
            else:
                self.judge(mutant, found, same, number, pairs)

    def judge(self, name: str, reported: list[str], steps: list[Step], number: int, pairs: Pairs) -> None:
        """Checks that the mutant without this step was reported exactly if conflicting operations became unordered."""
        full, mutant = Order(steps), Order(steps, dropped=number)
        missing = races(mutant, pairs)
        if reported and missing:
            self.reported += 1
        elif reported:
            self.wrong.append(f"{name}: reported, though everything is still ordered:\n{reported[0]}")
        elif missing:
            a, b = missing[0]
            self.wrong.append(f"{name}: not reported, though nothing orders {steps[a]} and {steps[b]}")
        else:
            self.equivalent.append(f"{name}: {why_nothing_is_lost(full, mutant, pairs, number)}")


def main(names: list[str]) -> int:
    start = time.monotonic()
    kernels()
    before = bascule.emulated.race_statistics()
    tally = Tally()
    gc.disable()  # a collection's frees would be in the trace
    for name in names or ALL:
        tally.try_scenario(name)
    after = bascule.emulated.race_statistics()
    nodes, edges, compared = after.nodes - before.nodes, after.edges - before.edges, after.bytes - before.bytes

    for line in tally.equivalent:
        print(f"equivalent: {line}")
    for line in tally.wrong:
        print(f"WRONG: {line}")
    share = len(tally.equivalent) / max(1, tally.mutants)
    relevant = tally.mutants - len(tally.equivalent)
    print(f"{tally.scenarios} scenarios, {tally.mutants} records and waits left out one at a time")
    print(f"compared: {nodes} nodes, {edges} edges, {compared} bytes")
    print(f"equivalent: {len(tally.equivalent)} of {tally.mutants} ({share:.1%}), each with its reason above")
    print(f"mutants: {tally.reported} of {relevant} reported, in {time.monotonic() - start:.1f} s")

    enough = bool(names) or (tally.scenarios >= LEAST_SCENARIOS and relevant >= LEAST_MUTANTS)
    good = not tally.wrong and tally.reported == relevant and min(nodes, edges, compared) > 0
    return 0 if good and enough and (bool(names) or share <= MOST_EQUIVALENT) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
