"""The real libraries, if installed and with a device: their dicts compared with the committed ones; kernels."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_process import printed_by

import bascule
from producers.catalogue import DIRECTORY, Library, libraries, read_library
from producers.live import OF_OURS, Session, differences

TESTS = Path(__file__).resolve().parents[1]
CASES = [
    pytest.param(library, environment, id=library.library + "".join(f" {key}={value}" for key, value in environment))
    for library in libraries()
    if any(export.make for export in library.exports)
    for environment in sorted({tuple(export.environment.items()) for export in library.exports if export.make})
]


def library_of_the_driver(directory: Path) -> str:
    """Makes the emulated device the libcuda.so.1 of this directory. It is the library that Bascule itself loads."""
    emulator = Path(bascule.__file__).with_name("libbascule_emulator.so").resolve()
    (directory / "libcuda.so.1").symlink_to(emulator)
    return str(directory)


def environment_of(library: Library, directory: Path) -> dict[str, str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)]),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # JAX would take three quarters of the memory
    }
    if bascule.current_device().emulated:
        paths = [library_of_the_driver(directory), os.environ.get("LD_LIBRARY_PATH", "")]
        environment |= {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}
    return environment


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that contains it
        return False


def report_of(library: Library, cases: list[str], environment: dict[str, str]) -> dict[str, Any]:
    for needed in library.needs:
        if not is_installed(needed):
            pytest.skip(f"{needed} is not installed")
    if bascule.current_device().emulated and library.not_emulated:
        pytest.skip(f"{library.needs[0]} cannot use the emulated device: {library.not_emulated}")
    printed = printed_by("-m", "producers.live", library.name, *cases, timeout=500, **environment)
    report: dict[str, Any] = json.loads(printed.splitlines()[-1])
    if "missing" in report:
        pytest.skip(report["missing"])
    return report


@pytest.mark.parametrize(("library", "environment"), CASES)
def test_live_objects_export_the_committed_dicts_and_go_through_kernels_in_both_directions(
    library, environment, tmp_path
):
    wanted = [export.case for export in library.exports if export.make and export.environment == dict(environment)]
    if library.consume and not environment:
        wanted += OF_OURS
    report = report_of(library, wanted, environment_of(library, tmp_path) | dict(environment))
    assert {case: problem for case, problem in report["cases"].items() if problem} == {}
    assert list(report["cases"]) == wanted


def test_a_library_may_refuse_of_ours_what_it_is_known_to_refuse_in_its_words():
    refusing = {"consume": "[][0]", "refuses": {"columns": "list index"}}
    library = replace(read_library(DIRECTORY / "numba.json"), imports="", **refusing)
    ours = bascule.zeros(1, "f4")
    assert Session(library).problem_of_consuming("columns", ours, np.zeros(1)) is None
    for case, refuses in (("whole", library.refuses), ("columns", {"columns": "other words"})):
        with pytest.raises(IndexError):
            Session(replace(library, refuses=refuses)).problem_of_consuming(case, ours, np.zeros(1))
    reading = Session(replace(library, consume="ours.copy_to_host()"))
    assert reading.problem_of_consuming("columns", ours, np.zeros(1)) is None
    assert "the library reads" in str(reading.problem_of_consuming("columns", ours, np.ones(1)))


COMMITTED = {
    "shape": [6, 4],
    "strides": None,
    "data": ["<pointer>", False],
    "typestr": "<f4",
    "descr": [["", "<f4"]],
    "version": 3,
}
LIVE = {"shape": (6, 4), "strides": None, "data": (4096, False), "typestr": "<f4", "descr": [("", "<f4")], "version": 3}


@pytest.mark.parametrize(
    "change",
    [
        *({"shape": [6, 4]}, {"shape": (6, 5)}, {"shape": (6,)}, {"shape": (6, 4.0)}, {"strides": (16, 4)}),
        *({"data": (4097, False)}, {"data": (4096, 0)}, {"data": (4096, True)}, {"typestr": "|f4"}, {"version": 2}),
        *({"descr": (("", "<f4"),)}, {"descr": [["", "<f4"]]}, {"stream": None}, {"version": True}),
    ],
    ids=str,
)
def test_a_key_a_value_or_a_type_that_differs_is_told(change):
    assert differences(COMMITTED, LIVE, lambda placeholder: 4096) == []
    (key,) = change
    told = differences(COMMITTED, LIVE | change, lambda placeholder: 4096)
    assert told
    assert all(text.startswith(key) for text in told)


@pytest.mark.parametrize("key", COMMITTED)
def test_a_key_that_is_missing_is_told(key):
    without = {name: value for name, value in LIVE.items() if name != key}
    assert differences(COMMITTED, without, lambda placeholder: 4096) == [f"{key} is missing"]
