"""`bascule.plot_timeline`: the drawn shapes, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from child_process import run_python

mpl.use("Agg")
import matplotlib.pyplot as plt

import bascule


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    module = bascule.compile("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }")
    path = str(tmp_path_factory.mktemp("trace") / "run.json")
    front, back = bascule.stream(), bascule.stream()
    with bascule.trace(path):
        x = bascule.to_device(np.ones(64, "f4"), stream=front)
        module.twice[1, 64, back](x)
        x.copy_to_host()
    return path


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_threads_and_streams_are_rows_and_waits_arrows(path, tmp_path):
    ax = bascule.plot_timeline(path)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert len(rows) == 3
    assert rows[0] == "MainThread"
    assert all(row.startswith("stream 0x") for row in rows[1:])
    arrows = [text for text in ax.texts if text.get_text() == "" and text.arrow_patch is not None]
    assert len(arrows) == 2
    assert ("mean nothing for a GPU" in ax.get_xlabel()) == bascule.current_device().emulated
    assert {text.get_text() for text in ax.figure.legends or ax.get_legend().get_texts()} >= {"kernel", "copy to host"}
    ax.figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_the_axes_may_be_given_and_the_trace_an_object():
    x = bascule.to_device(np.ones(64, "f4"))
    with bascule.trace() as trace:
        x.fill(2)
    _, ax = plt.subplots()
    assert bascule.plot_timeline(trace, ax=ax) is ax
    assert len(ax.get_yticklabels()) == 2


def test_a_wait_whose_beginning_was_not_recorded_has_no_arrow(path, tmp_path):
    events = json.loads(Path(path).read_text())
    kept = events["traceEvents"] if isinstance(events, dict) else events
    kept[:] = [event for event in kept if event["ph"] != "s"]
    (tmp_path / "cut.json").write_text(json.dumps(events))
    assert not any(getattr(text, "arrow_patch", None) for text in bascule.plot_timeline(tmp_path / "cut.json").texts)


def test_an_empty_trace_is_drawn():
    with bascule.trace() as trace:
        pass
    assert len(bascule.plot_timeline(trace).get_yticklabels()) == 0


def test_what_is_not_a_trace_is_refused(tmp_path):
    with pytest.raises(TypeError, match="`trace` must be what bascule.trace recorded"):
        bascule.plot_timeline(3)
    (tmp_path / "other.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match="not a file that bascule.trace wrote"):
        bascule.plot_timeline(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError):
        bascule.plot_timeline(tmp_path / "missing.json")


def test_without_matplotlib_the_error_names_the_command(path):
    program = f"import sys; sys.modules['matplotlib'] = None; import bascule; bascule.plot_timeline({path!r})"
    run = run_python("-c", program)
    assert 'ImportError: bascule.plot_timeline needs matplotlib: pip install "bascule[plot]"' in run.stderr
