"""Runs the race detector on programs of race_programs.py. As a script, in a process with two devices, it prints JSON.

python tests/python/ordering/race_outcomes.py lethal | others
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from race_programs import PROGRAMS
from scene import Scene, release_owners, searching_for_races

import bascule


def bytes_compared() -> int:
    return bascule.emulated.race_statistics().bytes if bascule.current_device().emulated else 0


def names(devices: int, *, lethal: bool = False) -> list[str]:
    """The programs that run on this number of devices."""
    return [name for name, program in PROGRAMS.items() if devices in program.devices and program.lethal == lethal]


def outcome(name: str, devices: int) -> dict[str, Any]:
    """Runs the program; returns the reports of races, the number of bytes compared, and any other error."""
    races: list[str] = []
    error = ""
    scene = Scene(devices, notes_bytes=False)
    before = bytes_compared()
    try:
        with searching_for_races():
            PROGRAMS[name].run(scene)
    except bascule.RaceError as found:
        races = list(found.races)
    except Exception:
        error = traceback.format_exc()
    release_owners(devices)
    return {"races": races, "bytes": bytes_compared() - before, "error": error}


def main(which: str) -> None:
    # Programs on one device need no separate process unless they are lethal.
    lethal = which == "lethal"
    chosen = [(name, n) for n in ((1, 2) if lethal else (2,)) for name in names(n, lethal=lethal)]
    json.dump({f"{name} on {devices}": outcome(name, devices) for name, devices in chosen}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
