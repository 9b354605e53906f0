"""The detector reports exactly those programs in race_programs.py that have a race, on one device and on two.

A GPU finds no races: there the programs run, and the driver must accept each of their calls.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from child_process import printed_by
from conftest import has_two_devices
from edges import EDGES
from operations import OPERATIONS
from race_outcomes import names, outcome
from race_programs import COMBINATIONS, PROGRAMS

import bascule


@pytest.fixture(autouse=True)
def devices_are_there(request: pytest.FixtureRequest) -> None:
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("devices") == 2 and not has_two_devices():
        pytest.skip("needs two devices")


@functools.cache
def outcomes_on_two_devices(which: str, schedule: str) -> dict[str, dict[str, Any]]:
    printed = printed_by(
        Path(__file__).with_name("race_outcomes.py"),
        which,
        BASCULE_EMULATED_DEVICES="2",
        BASCULE_EMULATED_SCHEDULE=schedule,
    )
    return json.loads(printed)


def complaint(name: str, devices: int) -> str:
    """Why the detector is wrong about a program; empty if it is right."""
    program = PROGRAMS[name]
    if not bascule.current_device().emulated:
        if program.lethal:
            pytest.skip("its race may be a fault, after which a GPU's process cannot go on")
        found = outcome(name, 1) if devices == 1 else outcomes_on_two_devices("others", "lazy")[f"{name} on 2"]
        return found["error"]
    if program.lethal:  # in the issued order, the operations are harmless
        found = outcomes_on_two_devices("lethal", "eager")[f"{name} on {devices}"]
    elif devices == 2:
        found = outcomes_on_two_devices("others", "lazy")[f"{name} on 2"]
    else:
        found = outcome(name, 1)
    races = found["races"]
    if found["error"]:
        return found["error"]
    if not program.races:
        return f"reported, without a race: {races}" if races else "" if found["bytes"] else "no byte was compared"
    if not any(all(word in race for word in program.named) for race in races):
        return f"no report names {program.named}: {races}"
    # A report names a line of a Python file for both operations.
    return "" if any(race.count(".py:") >= 2 for race in races) else f"no report has two places: {races}"


def complaints(programs: list[str], devices: int) -> dict[str, str]:
    return {name: wrong for name in programs if (wrong := complaint(name, devices))}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_races_with_each_that_conflicts_unless_an_event_orders_them(operation, devices):
    programs = [
        name
        for name in names(devices)
        if name in COMBINATIONS
        and COMBINATIONS[name][0] == operation
        and COMBINATIONS[name][1] in ("nothing", "an_event")
    ]
    assert complaints(programs, devices) == {}
    assert {PROGRAMS[name].races for name in programs} == ({False} if OPERATIONS[operation].waits else {False, True})


@pytest.mark.parametrize(("edge", "devices"), [(name, n) for name, edge in EDGES.items() for n in edge.devices])
def test_an_edge_orders_reads_and_writes_exactly_if_it_says_so(edge, devices):
    programs = [
        "-".join([*pair, "device"])
        for pair in [("write", edge, "read"), ("read", edge, "write"), ("write", edge, "write")]
    ]
    assert complaints(programs, devices) == {}


OTHERS = [(name, n) for name, program in PROGRAMS.items() if name not in COMBINATIONS for n in program.devices]


@pytest.mark.parametrize(("name", "devices"), [(name, n) for name, n in OTHERS if PROGRAMS[name].races])
def test_a_program_with_a_race_is_reported(name, devices):
    assert complaint(name, devices) == ""


@pytest.mark.parametrize(("name", "devices"), [(name, n) for name, n in OTHERS if not PROGRAMS[name].races])
def test_a_program_without_a_race_is_not_reported(name, devices):
    assert complaint(name, devices) == ""


MANY_ARRAYS = """
import resource
from pathlib import Path
import numpy as np
import bascule

def memory():  # in KiB; not the peak, which a process takes over from its parent
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024

values = np.zeros(1 << 20, "i4")
sizes = []
with bascule.emulated.checks(races=True):
    for _ in range(60):
        bascule.to_device(values).copy_to_host()
        sizes.append(memory())
print(sizes[-1] - sizes[9])
"""


@pytest.mark.usefixtures("emulated")
def test_the_search_forgets_what_was_done_to_memory_that_is_freed():
    printed = printed_by("-c", MANY_ARRAYS, BASCULE_DEVICE="emulated", BASCULE_EMULATED_CHECKS="")
    # The number is in KiB. If the accesses to all 50 arrays of 4 MiB were kept, they would take 100 MiB.
    assert int(printed) < 20_000
