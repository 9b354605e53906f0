"""Records the result of each instruction on a GPU; and compares the emulated device, or another GPU, with it.

    python tests/gpu/record.py [--out FILE]        record, default tests/gpu/results/DATE-DEVICE/opcodes.json
    python tests/gpu/record.py --compare FILE...   run the same here; exits with 1 if a result differs

The opcodes and their operands are in opcodes.py: some 1,500 of them on 64 threads each. A record has the device, the
driver, NVRTC and, for each opcode, the results and a checksum of the operands, so that an older record with other
operands is refused and not misread. tests/python/kernels/test_recorded_opcodes.py compares every committed record;
without a GPU it records the emulated device.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import bascule

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import opcodes  # noqa: E402
from opcodes import BITS, THREADS, Opcode, Words  # noqa: E402

BATCH = 100  # kernels per module, which is one compile


@dataclass
class Result:
    opcode: Opcode
    inputs: Words
    words: Words
    refused: str = ""  # the error of the compiler or the driver


def run(device_opcodes: list[Opcode]) -> Iterator[Result]:
    """Runs each opcode on the current device, in modules of BATCH, or in one each if the module is refused."""
    for start in range(0, len(device_opcodes), BATCH):
        yield from _run_batch(device_opcodes[start : start + BATCH])


def _run_batch(batch: list[Opcode]) -> Iterator[Result]:
    names = [f"opcode_{i}" for i in range(len(batch))]
    text = "".join(opcodes.kernel_of(opcode, name) for opcode, name in zip(batch, names, strict=True))
    try:
        module = bascule.compile(text)
        kernels = [module[name].prepare() for name in names]
    except bascule.Error as error:
        if len(batch) > 1:
            for opcode in batch:
                yield from _run_batch([opcode])
        else:
            yield Result(batch[0], opcodes.inputs_of(batch[0]), np.zeros(0, np.uint64), str(error))
        return
    for opcode, kernel in zip(batch, kernels, strict=True):
        inputs = opcodes.inputs_of(opcode)
        poison = np.full(THREADS, 0xA5A5A5A5A5A5A5A5, np.uint64)
        out = bascule.to_device(poison)
        kernel[1, THREADS](bascule.to_device(inputs), out)
        yield Result(opcode, inputs, out.copy_to_host())


def _packed(words: Words, bits: int) -> str:
    return base64.b64encode(zlib.compress(words.astype(f"<u{bits // 8}").tobytes(), 9)).decode()


def _unpacked(text: str, bits: int) -> Words:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), f"<u{bits // 8}").astype(np.uint64)


def architecture() -> int:
    """The architecture of the current device: 90 for sm_90."""
    return int("".join(letter for letter in bascule.current_device().arch if letter.isdigit()))


def available() -> list[Opcode]:
    """The opcodes that the current device has."""
    return [opcode for opcode in opcodes.opcodes() if opcode.architecture <= architecture()]


def record(chosen: list[Opcode] | None = None) -> dict[str, Any]:
    """The content of `--out` for the current device, by default for all opcodes that it has."""
    made: dict[str, Any] = {
        "date": date.today().isoformat(),
        "device": bascule.current_device().name,
        "architecture": architecture(),
        "driver": bascule._bascule._driver_info()["version"],
        "nvrtc": bascule._bascule._nvrtc_info()["version"],
        "results": {},
        "refused": {},
    }
    for result in run(available() if chosen is None else chosen):
        if result.refused:
            made["refused"][result.opcode.text] = result.refused.splitlines()[0]
        else:
            made["results"][result.opcode.text] = [
                zlib.crc32(result.inputs.tobytes()),
                _packed(result.words, BITS[result.opcode.result]),
            ]
    return made


def compare(recorded: dict[str, Any]) -> list[str]:
    """Returns a line for each opcode with other results than the record. Skips opcodes that this device lacks."""
    complaints = []
    by_text = {opcode.text: opcode for opcode in available()}
    chosen = [by_text[text] for text in recorded["results"] if text in by_text]
    for result in run(chosen):
        checksum, packed = recorded["results"][result.opcode.text]
        name = result.opcode.name
        if result.refused:
            complaints.append(f"{name}: refused here: {result.refused.splitlines()[0]}")
        elif checksum != zlib.crc32(result.inputs.tobytes()):
            complaints.append(f"{name}: was recorded with other operands; record it again")
        else:
            expected = _unpacked(packed, BITS[result.opcode.result])
            wrong = opcodes.different(result.opcode, expected, result.words)
            if wrong.any():
                thread = int(np.flatnonzero(wrong)[0]) % THREADS
                operands = ", ".join(f"{int(word):#x}" for word in result.inputs[:, thread])
                complaints.append(
                    f"{name}: {int(wrong.sum())} of {len(wrong)} results differ; of ({operands}) "
                    f"recorded {int(expected[thread]):#x}, here {int(result.words[thread]):#x}"
                )
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    if options.compare:
        complaints = []
        for file in options.compare:
            recorded = json.loads(file.read_text())
            found = compare(recorded)
            made = f"{recorded['device']}, {recorded['date']}"
            print(f"{file}: {made}: {len(recorded['results'])} opcodes, {len(found)} differ")
            complaints += found
        print("\n".join(complaints))
        return 1 if complaints else 0
    made = record()
    name = made["device"].lower().replace(" ", "-")
    out = options.out or HERE / "results" / f"{made['date']}-{name}" / "opcodes.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{out}: {len(made['results'])} opcodes, {len(made['refused'])} refused")
    for text, reason in made["refused"].items():
        print(f"refused: {text}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
