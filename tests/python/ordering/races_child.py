"""Runs the programs for two devices in a process that has them, and prints what was found, as JSON.

    python tests/python/ordering/races_child.py planted | race_free | scenarios | lethal NAME

For each program the reports of its races, how many bytes were compared, and the error that it ended with otherwise.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import planted_devices
from planted import LETHAL_ON_TWO_DEVICES
from race_free_devices import FREE_ON_TWO_DEVICES
from scenarios_devices import SCENARIOS_ON_TWO_DEVICES
from scene import Scene

import bascule

Program = Callable[[Scene], None]

TABLES: dict[str, dict[str, Program]] = {
    "planted": {name: program for name, (program, _) in planted_devices.ON_TWO_DEVICES.items()},
    "race_free": FREE_ON_TWO_DEVICES,
    "scenarios": SCENARIOS_ON_TWO_DEVICES,
    "lethal": {name: program for name, (program, _) in LETHAL_ON_TWO_DEVICES.items()},
}


def outcome(program: Program) -> dict[str, Any]:
    scene = Scene(peer=True)
    races: list[str] = []
    error = ""
    before = bascule.emulated.race_statistics().bytes
    try:
        with bascule.emulated.checks(races=True):
            program(scene)
    except bascule.RaceError as found:
        races = list(found.races)
    except Exception:
        error = traceback.format_exc()
    return {"races": races, "bytes": bascule.emulated.race_statistics().bytes - before, "error": error}


def main(table: str, *names: str) -> None:
    programs = TABLES[table]
    json.dump({name: outcome(programs[name]) for name in names or programs}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
