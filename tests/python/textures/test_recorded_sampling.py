"""The device and the reference agree with texture results recorded on GPUs (tests/gpu/textures.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from . import reference

GPU = Path(__file__).resolve().parents[2] / "gpu"
RECORDS = sorted((GPU / "results").glob("*/textures.json"))

specification = importlib.util.spec_from_file_location("recorded_textures", GPU / "textures.py")
assert specification is not None
recorded = importlib.util.module_from_spec(specification)
sys.modules["recorded_textures"] = recorded
specification.loader.exec_module(recorded)


def id_of(file: Path) -> str:
    return file.parent.name


@pytest.mark.parametrize("file", RECORDS, ids=id_of)
def test_textures_give_what_they_gave_on_a_gpu(file) -> None:
    assert recorded.compare(file.read_text()) == []


@pytest.mark.parametrize("file", RECORDS, ids=id_of)
def test_the_reference_gives_what_textures_gave_on_a_gpu(file) -> None:
    compared = 0
    for name, (case, result) in recorded.from_json(file.read_text()).items():
        # `reference.sample` knows no cubes, gathers, coordinates that are not finite, or sRGB.
        if case.kernel in ("cube", "gather") or name.startswith("special") or case.options.get("srgb"):
            continue
        at = [x.astype("f8") for x in case.at]
        here = reference.sample(case.texels[..., None], at, **case.options)[:, 0].astype(result.dtype)
        assert recorded.differences(case, result, here).tolist() == [], name
        compared += len(here)
    assert compared > 5000


@pytest.mark.skipif(not RECORDS, reason="no record of a GPU has been committed yet")
def test_a_sample_that_differs_in_its_last_bit_is_noticed() -> None:
    cases = recorded.from_json(RECORDS[0].read_text())
    name = "plane of 6x9, wrap, normalized, linear"
    case, result = cases[name]
    changed = np.array(result)
    changed[7] = np.nextafter(changed[7], np.float32(9))
    complaints = recorded.compare(recorded.as_json({**cases, name: (case, changed)}))
    assert len(complaints) == 1
    x, y = case.at
    assert complaints[0].startswith(f"{name}: 1 of {len(result)} samples differ; at {x[7]!s}, {y[7]!s}: ")
