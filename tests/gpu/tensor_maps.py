"""Records a driver's verdict on 10,000 random descriptions of tensor maps; the rules that Bascule checks give the same.

    python tests/gpu/tensor_maps.py [--out FILE]   record, default tests/gpu/results/DATE-DEVICE/tensor_maps.json

The descriptions are made from a seed by tests/python/tensor_maps/descriptions.py. A record has the device, the driver,
a digest of the descriptions, the number that the driver accepts, and those on which it and the rules differ. Extents
above 2**31 are left out, because the documentation of drivers differs on them. The committed records are compared by
tests/python/tensor_maps/test_recorded_verdicts.py. Needs compute capability 9.0.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from datetime import date
from pathlib import Path
from typing import Any

import bascule
from bascule import _bascule

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "tensor_maps"))

from descriptions import Description, random_description  # noqa: E402

COUNT = 10_000
SEED = 44


def descriptions(address: int) -> list[Description]:
    chosen = random.Random(SEED)
    made = []
    while len(made) < COUNT:
        description = random_description(chosen, address)
        if max(description["extents"]) <= 1 << 31:
            made.append(description)
    return made


def digest() -> str:
    """Returns the digest of the descriptions for memory at address 0."""
    return hashlib.sha256(json.dumps(descriptions(0)).encode()).hexdigest()


def record() -> dict[str, Any]:
    memory = bascule.zeros(4096, "u1")  # its address is a multiple of 256
    accepted, different = 0, []
    for number, description in enumerate(descriptions(memory.__cuda_array_interface__["data"][0])):
        broken, taken = _bascule._tensor_map_verdicts(tuple(description.values()))
        accepted += taken
        if (broken is None) != taken:
            different.append({"number": number, "accepted": taken, "rule": broken, **description})
    device = bascule.current_device()
    return {
        "device": device.name,
        "driver": _bascule._driver_info(),
        "date": str(date.today()),
        "digest": digest(),
        "accepted": accepted,
        "different": different,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    arch = bascule.current_device().arch
    if int(arch.rpartition("_")[2].rstrip("af")) < 90:
        print(f"nothing to record: tensor maps need compute capability 9.0, and this is {arch}")
        return 0
    made = record()
    name = made["device"].lower().replace(" ", "-")
    out = options.out or HERE / "results" / f"{made['date']}-{name}" / "tensor_maps.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(made, indent=1, default=str) + "\n")
    differs = len(made["different"])
    print(f"{made['device']}: accepts {made['accepted']} of {COUNT}, and differs from the rules on {differs}")
    return 1 if made["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
