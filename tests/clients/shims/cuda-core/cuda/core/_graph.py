"""Graphs are captured: a builder is a stream of the capture, and a split is streams that wait for it.

Bascule has no such builders, so that what they refuse is here.
"""

from __future__ import annotations

from typing import Any

import bascule


class GraphBuilder:
    is_join_required = False

    def __init__(self) -> None:
        self.graph = bascule.Graph()
        self.is_building = self.has_ended = False

    @classmethod
    def beside(cls, other: GraphBuilder) -> GraphBuilder:
        made = cls.__new__(cls)
        made.graph = other.graph
        made.stream = bascule.stream()
        made.is_building = made.is_join_required = True
        made.wait(other)
        return made

    def wait(self, other: GraphBuilder) -> None:
        event = bascule.event(timing=False)
        event.record(other.stream)
        self.stream.wait(event)

    def begin_building(self) -> GraphBuilder:
        self.graph.__enter__()
        self.stream = self.graph.stream
        self.is_building = True
        return self

    def end_building(self) -> GraphBuilder:
        self.graph.__exit__(None, None, None)
        self.is_building = False
        self.has_ended = True
        return self

    def complete(self, options: Any = None) -> Graph:
        if not self.has_ended:
            raise RuntimeError("Graph has not finished building.")
        return Graph(self.graph)

    def split(self, count: int) -> tuple[GraphBuilder, ...]:
        if count < 2:
            raise ValueError(f"Invalid split count: expecting >= 2, got {count}")
        return self, *(self.beside(self) for _ in range(count - 1))

    @staticmethod
    def join(*builders: GraphBuilder) -> GraphBuilder:
        if len(builders) < 2:
            raise ValueError("Must join with at least two graph builders")
        first, *others = sorted(builders, key=lambda builder: builder.is_join_required)
        for other in others:
            first.wait(other)
        return first


class Graph:
    def __init__(self, graph: bascule.Graph) -> None:
        self.graph = graph

    def upload(self, stream: Any) -> None:
        """Bascule's are uploaded with their first launch."""

    def launch(self, stream: Any) -> None:
        self.graph.launch(stream.stream)
