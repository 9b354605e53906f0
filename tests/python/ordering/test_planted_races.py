"""Races that were planted are reported, and how they are told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from planted import LETHAL, PLANTED, poll, read_on, set_on
from scene import N, Scene, kernels, unordered

import bascule

pytestmark = pytest.mark.usefixtures("emulated")


@contextmanager
def reported() -> Iterator[list[str]]:
    """The races of the block, of which there must be one at least."""
    races: list[str] = []
    with pytest.raises(bascule.RaceError) as caught, bascule.emulated.checks(races=True):
        yield races
    assert str(caught.value).startswith("stream race")
    races.extend(caught.value.races)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_reported(name):
    program, named = PLANTED[name]
    scene = Scene()
    with reported() as races:
        program(scene)
    assert any(all(word in race for word in named) for race in races), races
    # Both places are lines of the program's own files, whichever of Bascule's own lie between.
    assert any(race.count(".py:") >= 2 for race in races), races


@pytest.mark.parametrize("name", LETHAL)
def test_a_planted_race_that_may_be_a_fault_is_reported_where_it_is_none(name):
    _, named = LETHAL[name]
    text = f"""
import planted, scene, bascule
try:
    with bascule.emulated.checks(races=True):
        planted.LETHAL[{name!r}][0](scene.Scene())
except bascule.RaceError as error:
    print(error)
"""
    # In the order in which they are issued, the operations do no harm.
    environment = os.environ | {"BASCULE_EMULATED_SCHEDULE": "eager"}
    child = subprocess.run(
        [sys.executable, "-c", text],
        cwd=Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.stdout.startswith("stream race"), child.stderr
    assert all(word in child.stdout for word in named)


def test_at_least_twenty_kinds_are_planted():
    assert len(PLANTED) >= 20


# --- What is raised, and where


def race(scene: Scene) -> None:
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    read_on(scene, c, x)


@pytest.mark.parametrize("wait", ["stream", "event", "device", "query", "event query", "copy"])
def test_a_race_is_raised_by_the_next_call_that_waits(wait):
    scene = Scene()
    with bascule.emulated.checks(races=True):
        p, c = scene.streams(2)
        x, other = scene.array(p), scene.array(c)
        event = bascule.event()
        set_on(scene, p, x)
        read_on(scene, c, x)
        event.record(p)
        event.wait(c)
        event.record(c)
        calls: dict[str, Callable[[], object]] = {
            "stream": c.synchronize,
            "event": event.synchronize,
            "device": bascule.synchronize,
            "query": lambda: poll(c),
            "event query": lambda: poll(event),
            "copy": other.copy_to_host,
        }
        with pytest.raises(bascule.RaceError, match="^stream race"):
            calls[wait]()
        bascule.synchronize()  # it was raised once


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
        kernels().read[1, 3, c](unordered(x), N)  # the reader
    (report,) = races
    assert "kernels().set[1, N, p](unordered(x), 1, N)  # the writer" in report
    assert "kernels().read[1, 3, c](unordered(x), N)  # the reader" in report
    assert report.count("test_planted_races.py:") >= 2
    assert "12 bytes" in report


def test_outside_of_the_block_nothing_is_looked_for():
    with bascule.emulated.checks(races=False):
        before = bascule.emulated.race_statistics()
        race(Scene())
        bascule.synchronize()
        assert bascule.emulated.race_statistics() == before


def test_blocks_can_be_nested_and_restore_what_was():
    looks = bascule._bascule._looks_for_races
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
            set_on(scene, p, x)
            read_on(scene, c, x)

    with pytest.raises(bascule.RaceError) as caught, bascule.emulated.checks(races=True):
        race_often()
    assert len(caught.value.races) == 20
    text = str(caught.value)
    assert text.count("stream race: ") == 5
    assert text.endswith("and 15 more, in the attribute `races`. Mend the first, and look again.")
