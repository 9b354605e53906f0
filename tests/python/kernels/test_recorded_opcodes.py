"""Instructions give the results recorded on GPUs (tests/gpu/record.py); a difference is noticed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

GPU = Path(__file__).resolve().parents[2] / "gpu"
sys.path.insert(0, str(GPU))

import opcodes  # noqa: E402
import record  # noqa: E402

from .conftest import has_architecture  # noqa: E402

RECORDS = sorted((GPU / "results").glob("*/opcodes.json"))
SAMPLE = [
    "add.rz.f32", "mul.hi.u32", "fma.rn.sat.f32", "cvt.rzi.sat.s16.f32", "prmt.b32.f4e", "div.s64", "sqrt.rp.f64",
    "sin.approx.f32", "ex2.approx.f32", "min.NaN.f16x2", "bfe.s64", "shf.l.clamp.b32", "vabsdiff4.u32.u32.u32",
]  # fmt: skip


@pytest.fixture(autouse=True)
def of_recorded_architectures() -> None:
    if not has_architecture(800):
        pytest.skip("opcodes are recorded from compute capability 8.0 on")


def sample() -> list[opcodes.Opcode]:
    return [opcode for opcode in opcodes.opcodes() if opcode.name in SAMPLE]


NO_RECORD = pytest.param(None, marks=pytest.mark.skip("no record of a GPU has been committed yet"), id="none")


@pytest.mark.parametrize("file", RECORDS or [NO_RECORD], ids=lambda file: file.parent.name)
def test_the_device_answers_what_a_gpu_answered(file):
    assert record.compare(json.loads(file.read_text())) == []


@pytest.mark.slow
def test_every_opcode_runs_and_none_is_refused():
    made = record.record()
    assert made["refused"] == {}
    assert len(made["results"]) == len(record.available()) > 1200


def test_a_record_agrees_with_the_device_that_it_was_made_on():
    made = json.loads(json.dumps(record.record(sample())))
    assert made["refused"] == {}
    assert len(made["results"]) == len(sample()) >= 12
    assert record.compare(made) == []


def test_the_kernels_read_their_operands_and_write_every_result():
    by_name = {result.opcode.name: result for result in record.run(sample())}
    multiplied = by_name["mul.hi.u32"]
    np.testing.assert_array_equal(multiplied.words, multiplied.inputs[0] * multiplied.inputs[1] >> np.uint64(32))
    root = by_name["sqrt.rp.f64"]
    with np.errstate(invalid="ignore"):
        nearest = np.sqrt(root.inputs[0].view(np.float64))
    upward = root.words.view(np.float64)
    np.testing.assert_array_equal(np.isnan(upward), np.isnan(nearest))
    number = np.isfinite(nearest)
    assert (upward[number] >= nearest[number]).all()
    assert (upward[number] <= np.nextafter(nearest[number], np.inf)).all()


def test_one_wrong_bit_is_noticed_and_named():
    made = record.record(sample())
    for opcode in sample():
        checksum, packed = made["results"][opcode.text]
        words = record._unpacked(packed, opcodes.BITS[opcode.result])
        numbers = opcodes.as_numbers(opcode.result, words) if "f" in opcode.result else words
        thread = int(np.flatnonzero(np.isfinite(numbers))[0]) % record.THREADS
        sign = np.uint64(1 << (opcodes.BITS[opcode.result.removesuffix("x2")] - 1))
        words[thread] ^= sign if opcode.relative or opcode.absolute else np.uint64(1)
        changed = {**made, "results": {opcode.text: [checksum, record._packed(words, opcodes.BITS[opcode.result])]}}
        (complaint,) = record.compare(changed)
        assert complaint.startswith(f"{opcode.name}: 1 of")


def test_a_record_with_other_operands_is_refused_and_not_misread():
    made = record.record(sample()[:1])
    ((text, (checksum, packed)),) = made["results"].items()
    (complaint,) = record.compare({**made, "results": {text: [checksum + 1, packed]}})
    assert "record it again" in complaint
