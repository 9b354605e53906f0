"""`explain` tells what a launch would do, by the launch's own decisions, and does nothing."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from conftest import ForeignArray, traced

import bascule

KERNELS = """
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void scale(float* p, float factor, int n) { if (threadIdx.x < n) p[threadIdx.x] *= factor; }
template <class T> __global__ void set(T* p, T value) { p[threadIdx.x] = value; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    module = bascule.compile(KERNELS)
    module.add.prepare()
    module.scale.prepare()
    return module


def ones(stream: Any = None) -> bascule.DeviceArray:
    return bascule.to_device(np.ones(32, "f4"), stream=stream)


def name(stream: bascule.Stream) -> str:
    return repr(stream).removeprefix("<bascule.Stream ").removesuffix(">")


def waited_for(launch: Callable[[], object]) -> tuple[int, list[int], list[int]]:
    """Runs `launch`; returns its stream, the streams that it waited for and those that waited for it, as traced."""
    with traced() as operations:
        launch()
    index = next(i for i, o in enumerate(operations) if o.kind == "launch")
    before = [o.stream for o in operations[:index] if o.kind == "record"]
    after = [o.stream for o in operations[index:] if o.kind == "wait"]
    return operations[index].stream, before, after


@pytest.mark.usefixtures("unordered")
def test_it_agrees_with_what_the_launch_does(module, rng):
    handles = [bascule.stream() for _ in range(3)]
    streams = [*handles, bascule.legacy_default_stream(), bascule.per_thread_default_stream()]
    by_name = {name(stream): stream.handle for stream in streams}
    for _ in range(60):
        arrays = []
        for stream in rng.choice(len(streams), 3):
            array = ones(streams[stream])
            foreign = [
                array,
                ForeignArray(array),
                ForeignArray(array, stream=None),
                bascule.as_cuda_array(array, sync=False),
            ]
            arrays.append(foreign[rng.integers(len(foreign))])
        given = streams[rng.integers(len(streams))] if rng.random() < 0.5 else None
        launcher = module.add[1, 32, given] if given else module.add[1, 32]
        if rng.random() < 0.1:
            launcher = launcher.options(sync=False)
        launcher(*arrays)
        current = streams[rng.integers(len(streams))] if rng.random() < 0.3 else None
        if current is not None:
            with current:
                explained = launcher.explain(*arrays)
                launched = waited_for(lambda arrays=arrays, launcher=launcher: launcher(*arrays))
        else:
            explained = launcher.explain(*arrays)
            launched = waited_for(lambda arrays=arrays, launcher=launcher: launcher(*arrays))
        waits = [by_name[stream] for stream, _ in explained.waits]
        assert (by_name[explained.stream], waits, waits) == launched
        expected = "given" if given else "current" if current else explained.choice
        assert explained.choice == expected
        assert explained.choice in ("given", "current", "common", "default")


def test_it_issues_no_operation(module):
    p, c = bascule.stream(), bascule.stream()
    arrays = [ones(p) for _ in range(3)]
    with traced() as operations:
        module.add[1, 32, c].explain(*arrays)
        module.add.explain(*arrays)
        module.scale.forall(32).explain(arrays[0], 2, 32)
        module.scale.forall(0).explain(arrays[0], 2, 32)
    assert operations == []


def test_the_text_says_where_what_and_why(module):
    p, c = bascule.stream(), bascule.stream()
    explained = module.add[2, 16, c].explain(ones(p), ForeignArray(ones(c)), ForeignArray(ones(), stream=None))
    text = str(explained)
    here = "emulated:0" if bascule.current_device().emulated else "cuda:0"
    assert repr(explained) == text
    for part in (
        f"add(const float* a, const float* b, float* out) on {here}",
        "(2, 1, 1) blocks of (16, 1, 1) threads, 32 in all",
        f"stream: {name(c)}; it was given",
        "1 'a', declared const float*: a float32 array of shape (32,)",
        f"in pool memory of {here}",
        f"stream {name(p)} (the stream it is bound to): the launch waits for it, and it waits for the launch",
        f"stream {name(c)} (its interface names it): no wait: the launch is on that stream",
        "names no stream, which in version 3 of the interface means that there is nothing to wait for",
        f"before the launch: {name(c)} waits for {name(p)} (argument 1 'a')",
        f"after the launch: {name(p)} waits for {name(c)}",
    ):
        assert part in text, text
    assert explained.grid == (2, 1, 1)
    assert explained.arguments[0].stream == name(p)
    assert explained.arguments[2].stream is None


def test_it_says_how_the_stream_of_a_silent_array_was_found(module):
    class Image:
        def __init__(self) -> None:
            self.array = ones()

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return self.array.export(version=2).__cuda_array_interface__

    p, c = bascule.stream(), bascule.stream()
    scale, image = module.scale[1, 32, c], Image()
    with pytest.warns(bascule.UnorderedProducerWarning):
        assert "none is known for its type (bascule.register_producer)" in str(scale.explain(image, 2, 3))
    assert "named in `streams` of this launch" in str(scale.options(streams={"p": p}).explain(image, 2, 3))
    assert "sync=False" in str(scale.options(sync=False).explain(image, 2, 3))
    bascule.register_producer(Image, stream_of=lambda _image: p)
    assert f"{name(p)} (by the function registered for its type)" in str(scale.explain(image, 2, 3))


def test_values_are_shown_as_they_were_passed(module):
    explained = module.scale[1, 32].explain(ones(), 2.5, n=7)
    assert [argument.value for argument in explained.arguments[1:]] == ["2.5", "7"]
    assert [argument.declared for argument in explained.arguments] == ["float*", "float", "int"]


def test_what_a_launch_would_refuse_is_refused(module):
    with pytest.raises(TypeError, match="argument 1 'p'"):
        module.scale[1, 32].explain(1.5, 2, 3)
    with pytest.raises(ValueError, match="block"):
        module.scale[1, 4096].explain(ones(), 2, 3)
    with pytest.raises(TypeError, match="takes 3 arguments, got 1"):
        module.scale.explain(ones())


def test_without_a_grid_it_says_the_rest(module):
    text = str(module.scale.explain(ones(), 2, 3))
    assert "grid: not given; use kernel[grid, block].explain(...)" in text
    assert "every array names it" in text
    work = module.scale.forall(1000).explain(ones(), 2, 3)
    assert "chosen for 1000 threads of work" in str(work)
    assert np.prod(work.grid) * np.prod(work.block) >= 1000
    assert "no work, so nothing would be launched" in str(module.scale.forall(0).explain(ones(), 2, 3))


def test_a_template_says_which_function_it_would_be(module):
    explained = module.set[1, 32].explain(ones(), 1)
    assert explained.kernel == "set<float>"
    assert explained.arguments[0].declared == "float*"


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_notebooks_show_the_same_as_a_table(module):
    p, c = bascule.stream(), bascule.stream()
    explained = module.add[1, 32, c].explain(ones(p), ones(p), ones(c))
    cells = Cells()
    cells.feed(explained._repr_html_())
    assert cells.open == []
    text = "\n".join(cells.text)
    for part in (
        explained.signature,
        explained.stream,
        "const float*",
        "before the launch",
        explained.arguments[0].order,
    ):
        assert part in text
