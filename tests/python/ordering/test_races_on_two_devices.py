"""Races across devices are reported, and programs that order two devices are not: in processes that have two."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("emulated")

HERE = Path(__file__).resolve().parent


@functools.cache
def outcomes(table: str, *names: str, schedule: str = "lazy") -> dict[str, dict[str, Any]]:
    """What races_child.py found in each program of the table."""
    run = subprocess.run(
        [sys.executable, str(HERE / "races_child.py"), table, *names],
        env=os.environ | {"BASCULE_EMULATED_DEVICES": "2", "BASCULE_EMULATED_SCHEDULE": schedule},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def programs(module: str, decorator: str) -> list[str]:
    """The functions of a module that can be imported only where there are two devices."""
    tree = ast.parse((HERE / module).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return [f.name for f in functions if ast.unparse(f.decorator_list[0]).startswith(decorator)]


def planted(*, lethal: bool) -> dict[str, tuple[str, ...]]:
    """The planted races by name, with what their reports must name."""
    found = {}
    for node in ast.parse((HERE / "planted_devices.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            call = node.decorator_list[0]
            assert isinstance(call, ast.Call)
            if lethal == any(keyword.arg == "lethal" for keyword in call.keywords):
                found[node.name] = tuple(ast.literal_eval(word) for word in call.args)
    return found


@pytest.mark.parametrize("name", planted(lethal=False))
def test_a_race_planted_across_devices_is_reported(name):
    found = outcomes("planted")[name]
    assert found["error"] == ""
    races = found["races"]
    assert any(all(word in race for word in planted(lethal=False)[name]) for race in races), races
    assert any(race.count(".py:") >= 2 for race in races), races


@pytest.mark.parametrize("name", planted(lethal=True))
def test_a_race_across_devices_that_may_be_a_fault_is_reported_where_it_is_none(name):
    # In the order in which they are issued, the operations do no harm.
    (found,) = outcomes("lethal", name, schedule="eager").values()
    assert found["error"] == ""
    assert any(all(word in race for word in planted(lethal=True)[name]) for race in found["races"]), found


@pytest.mark.parametrize("name", programs("race_free_devices.py", "race_free"))
def test_a_program_on_two_devices_without_a_race_is_not_reported(name):
    found = outcomes("race_free")[name]
    assert (found["error"], found["races"]) == ("", [])
    assert found["bytes"] > 0


def test_what_bascule_orders_across_devices_has_no_race():
    found = outcomes("scenarios")
    assert {name: each for name, each in found.items() if each["error"] or each["races"] or not each["bytes"]} == {}
    assert len(found) >= 8


def test_every_program_was_run():
    assert sorted(outcomes("planted")) == sorted(planted(lethal=False))
    assert sorted(outcomes("race_free")) == sorted(programs("race_free_devices.py", "race_free"))
    assert len(outcomes("planted")) >= 20
    assert len(outcomes("race_free")) >= 20
