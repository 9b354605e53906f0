"""The checker of traces finds each mistake that it is for."""

from __future__ import annotations

import copy

import pytest

from .trace_format import problems

VALID = [
    {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "host"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 7, "args": {"name": "main"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 8, "args": {"name": "stream"}},
    {"name": "outer", "cat": "launch", "ph": "X", "pid": 1, "tid": 7, "ts": 1.0, "dur": 5.0, "args": {}},
    {"name": "issue", "cat": "issue", "id": 1, "ph": "s", "pid": 1, "tid": 7, "ts": 1.0},
    {"name": "inner", "cat": "wait", "ph": "X", "pid": 1, "tid": 7, "ts": 2.0, "dur": 4.0, "args": {}},
    {"name": "kernel", "cat": "kernel", "ph": "X", "pid": 1, "tid": 8, "ts": 3.0, "dur": 1.0, "args": {}},
    {"name": "issue", "cat": "issue", "id": 1, "ph": "f", "bp": "e", "pid": 1, "tid": 8, "ts": 3.0},
]


def test_a_trace_in_which_all_is_right_has_no_problems():
    assert problems(VALID) == []


@pytest.mark.parametrize(
    ("index", "change", "said"),
    [
        (3, {"ph": "Q"}, "unknown phase"),
        (3, {"ts": -1.0}, "at least 0"),
        (3, {"dur": -1.0}, "at least 0"),
        (3, {"dur": None}, "at least 0"),
        (3, {"tid": "main"}, "not an integer"),
        (5, {"dur": 9.0}, "ends outside"),
        (7, {"id": 2}, "has only"),
        (7, {"ts": 9.0}, "bound to no span"),
        (4, {"ts": 6.5}, "order"),
        (1, {"args": {}}, "not metadata"),
        (2, {"tid": 9}, "no name"),
        (0, {"pid": 9}, "no name"),
    ],
)
def test_each_mistake_is_found(index, change, said):
    events = copy.deepcopy(VALID)
    events[index].update(change)
    assert any(said in problem for problem in problems(events)), problems(events)


def test_a_missing_key_is_found():
    events = copy.deepcopy(VALID)
    del events[4]["id"]
    assert any("lacks ['id']" in problem for problem in problems(events))
