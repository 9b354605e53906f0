"""The drivers of GPUs gave the same verdicts on random descriptions as the rules (tests/gpu/tensor_maps.py)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

GPU = Path(__file__).resolve().parents[2] / "gpu"
RECORDS = sorted((GPU / "results").glob("*/tensor_maps.json"))


def recorder():
    spec = importlib.util.spec_from_file_location("tensor_maps_recorder", GPU / "tensor_maps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rules_are_those_of_recorded_drivers() -> None:
    if not RECORDS:
        pytest.skip("no run on a GPU has recorded its driver's verdicts yet")
    for path in RECORDS:
        record = json.loads(path.read_text())
        assert record["digest"] == recorder().digest(), f"{path}: the descriptions have changed: record again"
        assert record["different"] == [], path


def test_this_device_gives_the_verdicts_of_the_rules(hopper) -> None:
    made = recorder().record()
    assert made["different"] == []
    assert 3_000 < made["accepted"] < 8_000
