"""What the benchmarks conclude and draw: verdicts, how many instructions each library executes, and bar charts."""

from __future__ import annotations

import importlib
import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
# The output of callgrind with full names: a separate line for each name, and one cost a line.
PROFILE = """\
# callgrind format
desc: Trigger: Client Request: own: 10
ob=/build/bench_native.so
fl=bench_native.c
fn=count_calls
0 7
cob=/build/_bascule.so
cfi=launcher.cpp
cfn=call_launcher
calls=10 0
0 1000

ob=/build/_bascule.so
fl=launcher.cpp
fn=call_launcher
0 600
cob=/build/libbascule_emulator.so
cfn=cuLaunchKernelEx
calls=10 0
0 300
cob=/build/bench_native.so
cfn=producer_interface'2
calls=10 0
0 100

ob=/build/libbascule_emulator.so
fn=cuLaunchKernelEx
0 250
cfn=check
calls=10 0
0 50
fn=check
0 50

ob=/build/bench_native.so
fn=producer_interface'2
0 100
"""


@pytest.fixture(autouse=True)
def path_of_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # measuring.py sets it: restored afterwards
    monkeypatch.syspath_prepend(str(BENCH))


def bench(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("values", "goal", "verdict"),
    [
        ([1.0, 1.1, 1.2], "<= 1.5", "met"),
        ([1.6, 1.7, 1.8], "<= 1.5", "not met"),
        ([1.4, 1.45, 1.6], "<= 1.5", "too noisy"),
        ([2000.0, 40000.0, 90000.0], ">= 1000", "met"),
        ([0.95, 1.0, 1.05], "0.9 to 1.1", "met"),
        ([0.95, 1.0, 1.2], "0.9 to 1.1", "too noisy"),
        ([0.5, 0.5, 0.5], "", "recorded"),
        ([0.1, 0.5, 9.0], "", "too noisy"),
        ([0.0], "<= 0", "met"),
    ],
)
def test_a_goal_within_the_interval_of_the_median_is_not_decided(values, goal, verdict):
    measuring = bench("measuring")
    found = measuring.result(measuring.Row("X", "something", lambda r: r["x"], goal), values)
    assert found.verdict == verdict
    assert found.measured == (verdict != "too noisy")


def test_one_outlier_among_many_rounds_changes_no_verdict():
    measuring = bench("measuring")
    row = measuring.Row("X", "something", lambda r: r["x"], "<= 2")
    assert measuring.result(row, [1.0] * 30 + [100.0]).verdict == "met"


def test_instructions_are_the_drivers_the_producers_or_ours(tmp_path):
    instructions = bench("instructions")
    (tmp_path / "profile").write_text(PROFILE)
    name, profile = instructions.read_profile(tmp_path / "profile")
    assert name == "own: 10"
    assert profile.loop() == 7
    assert profile.inside("libbascule_emulator") == 300
    assert profile.inside("bench_native", "exchange_native") == 100
    assert sum(profile.own.values()) - profile.loop() == 1000
    assert profile.inclusive()["_bascule.so", "call_launcher"] == 1000


def test_bars_are_drawn_with_their_labels_and_figures(tmp_path):
    plot = bench("plot")
    bars = [{"what": "raw & bare", "median": 50.0, "unit": "ns"}, {"what": "slow", "median": 90000.0, "unit": "ns"}]
    file = tmp_path / "gpu.json"
    file.write_text(json.dumps({"machine": "here", "bars": bars}))
    drawing = ElementTree.fromstring(plot.draw([plot.bars_of(file, "ns")]))
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["here", "raw & bare", "50 ns", "slow", "90,000 ns"]
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}rect"))) == 2
