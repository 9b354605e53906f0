"""Graph builders, which capture: a builder has a stream of the capture, and a split adds streams that wait for it.

Bascule has no such builders, so their error messages are implemented here.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from typing import Any

import bascule

_building: weakref.WeakSet[GraphBuilder] = weakref.WeakSet()


class GraphBuilder:
    is_join_required = False

    def __init__(self) -> None:
        self.graph = bascule.Graph()
        self.is_building = self.has_ended = self.is_closed = False

    @classmethod
    def beside(cls, other: GraphBuilder) -> GraphBuilder:
        made = cls.__new__(cls)
        made.graph = other.graph
        made.stream = bascule.stream()
        made.is_building = made.is_join_required = True
        made.has_ended = made.is_closed = False
        made.wait(other)
        return made

    def wait(self, other: GraphBuilder) -> None:
        event = bascule.event(timing=False)
        event.record(other.stream)
        self.stream.wait(event)

    def begin_building(self) -> GraphBuilder:
        if self.has_ended:
            raise RuntimeError("Cannot resume building after building has ended.")
        if self.is_building:
            raise RuntimeError("Graph builder is already building.")
        self.graph.__enter__()
        self.stream = self.graph.stream
        self.is_building = True
        _building.add(self)
        return self

    def end_building(self) -> GraphBuilder:
        self.graph.__exit__(None, None, None)
        self.is_building = False
        self.has_ended = True
        return self

    def close(self) -> None:
        if self.is_building and not self.is_join_required:
            with contextlib.suppress(bascule.Error):
                self.end_building()
        self.is_building = False
        self.is_closed = True

    def __del__(self) -> None:
        self.close()

    def complete(self, options: Any = None) -> Graph:
        if self.is_closed:
            raise RuntimeError("Graph builder has been closed.")
        if not self.has_ended:
            raise RuntimeError("Graph has not finished building.")
        return Graph(self.graph)

    def split(self, count: int) -> tuple[GraphBuilder, ...]:
        if count < 2:
            raise ValueError(f"Invalid split count: expecting >= 2, got {count}")
        if not self.is_building:
            raise RuntimeError("Graph builder must be building before it can be split.")
        return self, *(self.beside(self) for _ in range(count - 1))

    @staticmethod
    def join(*builders: GraphBuilder) -> GraphBuilder:
        if len(builders) < 2:
            raise ValueError("Must join with at least two graph builders")
        first, *others = sorted(builders, key=lambda builder: builder.is_join_required)
        for other in others:
            first.wait(other)
            other.close()
        return first

    def embed(self, child: GraphBuilder) -> None:
        if not isinstance(child, GraphBuilder):
            raise TypeError(f"a builder was expected, not {type(child).__name__}")
        child.graph.launch(self.stream)

    def callback(self, function: Any, *, user_data: Any = None) -> None:
        """Passes the address of a copy of `user_data` to a C function, and nothing to a Python function."""
        arguments = []
        if isinstance(function, ctypes._CFuncPtr):
            arguments = [ctypes.create_string_buffer(user_data) if isinstance(user_data, bytes) else user_data]
        elif user_data is not None:
            raise ValueError("user_data is only supported with functions of ctypes")
        self.stream.launch_host_function(function, *arguments)


def end_captures() -> None:
    """Ends captures that a failed test has left."""
    for builder in list(_building):
        builder.close()


class GraphDefinition:
    """A class without members: Bascule's graphs are captured, and their nodes are not objects."""


class Graph:
    def __init__(self, graph: bascule.Graph) -> None:
        self.graph = graph

    def upload(self, stream: Any) -> None:
        """Does nothing: Bascule's graphs are uploaded with their first launch."""

    def launch(self, stream: Any) -> None:
        self.graph.launch(stream.stream)

    def close(self) -> None:
        self.graph = None
