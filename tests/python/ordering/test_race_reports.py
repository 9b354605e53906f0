"""Where a race is raised, and the text of its report."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from child_process import run_python
from edges import poll_until_done
from scene import N, Scene, kernels, unordered

import bascule

pytestmark = pytest.mark.usefixtures("emulated")


@contextmanager
def reported() -> Iterator[list[str]]:
    """The races of the block, which must have at least one."""
    races: list[str] = []
    with pytest.raises(bascule.RaceError) as caught, bascule.emulated.checks(races=True):
        yield races
    assert str(caught.value).startswith("stream race")
    races.extend(caught.value.races)


def race(scene: Scene) -> None:
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    scene.consume(c, x)


@pytest.mark.parametrize("wait", ["stream", "event", "device", "query", "event query", "copy"])
def test_a_race_is_raised_by_the_next_call_that_waits(wait):
    scene = Scene()
    with bascule.emulated.checks(races=True):
        p, c = scene.streams(2)
        x, other = scene.array(p), scene.array(c)
        event = bascule.event()
        scene.produce(p, x)
        scene.consume(c, x)
        event.record(p)
        event.wait(c)
        event.record(c)
        calls: dict[str, Callable[[], object]] = {
            "stream": c.synchronize,
            "event": event.synchronize,
            "device": bascule.synchronize,
            "query": lambda: poll_until_done(c),
            "event query": lambda: poll_until_done(event),
            "copy": other.copy_to_host,
        }
        with pytest.raises(bascule.RaceError, match="^stream race"):
            calls[wait]()
        bascule.synchronize()  # it was raised only once


def test_a_race_is_raised_at_the_latest_when_the_block_ends():
    with pytest.raises(bascule.RaceError, match="^stream race") as caught, bascule.emulated.checks(races=True):
        race(Scene())
    assert isinstance(caught.value, bascule.Error)
    assert isinstance(caught.value, RuntimeError)
    assert len(caught.value.races) == 1


def test_what_the_block_raises_is_raised_with_the_races_as_notes():
    def fails() -> None:
        with bascule.emulated.checks(races=True):
            race(Scene())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fails()
    assert [note[:11] for note in caught.value.__notes__] == ["stream race"]


def test_a_report_names_both_lines_and_the_bytes():
    scene = Scene()
    with reported() as races:
        p, c = scene.streams(2)
        x = scene.array(p)
        kernels().set[1, N, p](unordered(x), 1, N)  # the writer
        kernels().read[1, N, c](unordered(x), 3)  # the reader
    (report,) = races
    assert "kernels().set[1, N, p](unordered(x), 1, N)  # the writer" in report
    assert "kernels().read[1, N, c](unordered(x), 3)  # the reader" in report
    assert report.count("test_race_reports.py:") >= 2
    assert "12 bytes" in report


PROGRAM = """
import bascule

module = bascule.compile("__global__ void one(float* p) { p[threadIdx.x] = 1; }")
p, c = bascule.stream(), bascule.stream()
x = bascule.zeros(8, "f4", stream=p)
with bascule.emulated.checks(races=True):
    module.one[1, 8, p].options(sync=False)(x)
    module.one[1, 8, c].options(sync=False)(x)
"""


@pytest.mark.parametrize("absolute", [False, True])
def test_a_report_has_one_path_for_a_file_however_it_was_run(absolute, tmp_path):
    (tmp_path / "racing.py").write_text(PROGRAM)
    script = str(tmp_path / "racing.py") if absolute else "racing.py"
    done = run_python(script, cwd=tmp_path)
    report = done.stderr.partition("stream race")[2]
    paths = re.findall(r"(\S*racing\.py):\d", report)
    assert len(paths) == 3, done.stderr  # both launches, and the allocation
    assert len({os.path.realpath(path) for path in paths}) == len(set(paths)) == 1


def test_outside_of_the_block_nothing_is_looked_for():
    with bascule.emulated.checks(races=False):
        before = bascule.emulated.race_statistics()
        race(Scene())
        bascule.synchronize()
        assert bascule.emulated.race_statistics() == before


def test_blocks_can_be_nested_and_restore_what_was():
    looks = bascule._bascule._checks_that_raise
    before = looks()
    with bascule.emulated.checks(races=True):
        with bascule.emulated.checks(races=False):
            assert not looks()
        assert looks()
        with pytest.raises(bascule.RaceError), bascule.emulated.checks(races=True):
            race(Scene())
        assert looks()
    assert looks() == before


def test_many_races_are_told_in_few_words():
    scene = Scene()
    p, c = scene.streams(2)

    def race_often() -> None:
        for x in [scene.array(p) for _ in range(20)]:
            scene.produce(p, x)
            scene.consume(c, x)

    with pytest.raises(bascule.RaceError) as caught, bascule.emulated.checks(races=True):
        race_often()
    assert len(caught.value.races) == 20
    text = str(caught.value)
    assert text.count("stream race: ") == 5
    assert text.endswith("and 15 more, in the attribute `findings`. Fix the first error and rerun.")
