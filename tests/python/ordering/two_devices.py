"""Runs cases in a process that has two devices: prints why each failed, as JSON; empty for those that passed.

Every function whose line ends in "# a case" is one; test_devices.py makes a test of each.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from conftest import ForeignArray, traced
from plain_launches import rule_2

import bascule

COUNT = 32
ADD = """
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void nothing(int i) {}
"""
SUM_VALID = """
__global__ void sum(bascule::masked_view<const float, 1> x, float* out) {
    out[0] = out[1] = 0;
    for (int i = 0; i < x.extent(0); ++i) if (x.valid(i)) { out[0] += x(i); out[1] += 1; }
}
"""
module = bascule.compile(ADD)
KINDS = ("record", "wait", "launch", "copy", "fill", "graph launch")
first, second = bascule.device(0), bascule.device(1)
NAMES = [("emulated" if first.emulated else "cuda") + f":{number}" for number in (0, 1)]  # as messages name them


def ones(device: bascule.Device, stream: Any = None) -> bascule.DeviceArray:
    with device:
        return bascule.to_device(np.ones(COUNT, "f4"), stream=stream)


def stream_of(device: bascule.Device) -> bascule.Stream:
    with device:
        return bascule.stream()


def ordering(action: Callable[[], object]) -> list[tuple[str, int, int]]:
    """Runs `action`, and returns (kind, device, stream) of its operations of the kinds in KINDS."""
    with traced() as operations:
        action()
    return [(o.kind, o.device, o.stream) for o in operations if o.kind in KINDS]


def ordered(c: bascule.Stream, *producers: bascule.Stream, kind: str = "launch") -> list[tuple[str, int, int]]:
    """The operations that rule 2 requires for one operation on c."""
    return [(what, s.device.ordinal, s.handle) for what, s in rule_2(c, *producers, kind=kind)]


def default_stream(device: bascule.Device, handle: int) -> bascule.Stream:
    with device:
        return bascule.external_stream(handle)


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    with traced() as operations:
        message = ""
        try:
            yield
        except bascule.ArgumentError as error:
            message = str(error)
        assert message, "not refused"
        assert [part for part in parts if part not in message] == [], message
    assert [o for o in operations if o.kind in KINDS] == []


def current_context() -> int:
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    context = ctypes.c_void_p()
    assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value or 0


def new_things_are_made_on_the_device_that_was_entered() -> None:  # a case
    with second:
        assert bascule.current_device() == second
        assert bascule.stream().device == second
        assert bascule.event().device == second
        assert bascule.default_stream().device == second
        assert bascule.to_device(np.zeros(3)).device == second
        assert bascule.device_array(3, "f4").device == second
        with bascule.device(0):
            assert bascule.device_array(3, "f4").device == first
        assert bascule.current_device() == second
    assert bascule.current_device() == first


def a_stream_that_is_entered_brings_its_device() -> None:  # a case
    stream = stream_of(second)
    with stream:
        x = bascule.device_array(3, "f4")
        assert (x.device, x.stream) == (second, stream)
        with first:
            y = bascule.device_array(3, "f4")
            assert (y.device, y.stream) == (first, bascule.default_stream())
            with second:  # the stream of this device that was entered last
                assert bascule.device_array(3, "f4").stream == stream


def the_context_of_the_thread_stays_what_it_was() -> None:  # a case
    kernel = module.add.prepare()

    def use() -> None:
        with second:
            x = bascule.to_device(np.ones(COUNT, "f4"))
            kernel[1, COUNT](x, x, x)
            x.fill(1)
            assert (x.copy_to_host() == 1).all()

    before = current_context()
    use()
    assert current_context() == before
    seen: list[int] = []

    def fresh() -> None:
        use()
        seen.append(current_context())

    thread = threading.Thread(target=fresh)
    thread.start()
    thread.join()
    assert seen == [0] or seen == [before], seen


def a_launch_goes_to_the_device_of_its_arrays_and_their_common_stream() -> None:  # a case
    kernel = module.add.prepare()
    p = stream_of(second)
    x = ones(second, p)
    kernel[1, COUNT](x, x, x)
    assert ordering(lambda: kernel[1, COUNT](x, x, x)) == [("launch", 1, p.handle)]


def a_launch_without_arrays_goes_to_the_device_that_was_entered() -> None:  # a case
    nothing = module.nothing[1, 1]
    nothing(1)
    assert ordering(lambda: nothing(1)) == [("launch", 0, 1)]
    with second:
        nothing(1)
        assert ordering(lambda: nothing(1)) == [("launch", 1, 1)]
    assert ordering(lambda: nothing(1)) == [("launch", 0, 1)]


def a_stream_and_an_array_of_two_devices_are_refused_with_both_named() -> None:  # a case
    kernel = module.add.prepare()
    p, x = stream_of(first), ones(second)
    kernel[1, COUNT](x, x, x)
    with refused(NAMES[1], "device 0", "its stream", "peer=True"):
        kernel[1, COUNT, p](x, x, x)
    with refused("device 1", "device 0", "its stream", "peer=True"):
        kernel[1, COUNT, p](ForeignArray(x, stream=None), x, x)
    with refused(NAMES[0], NAMES[1]):
        x.fill(1, stream=p)
    with refused(NAMES[0], NAMES[1]):
        x.copy(stream=p)
    with refused(NAMES[0], NAMES[1]):
        x.copy_to_host(stream=p)
    with refused(NAMES[0], NAMES[1]):
        bascule.from_dlpack(x, stream=p)
    with second, refused(NAMES[0], NAMES[1]):
        bascule.device_array(3, "f4", stream=p)


def a_current_stream_of_another_device_than_the_arrays_is_refused_too() -> None:  # a case
    kernel = module.add.prepare()
    x = ones(second)
    bound = kernel[1, COUNT].bind(x, x, x)
    with stream_of(first):
        with refused(NAMES[1], "device 0", "its stream"):
            kernel[1, COUNT](x, x, x)
        with refused(NAMES[0], NAMES[1]):
            bound()
        with refused(NAMES[0], NAMES[1]):
            x.fill(1)
        with second:  # overrides the current stream of the other device
            x.fill(1)
            bound()


def arrays_of_two_devices_are_refused_with_both_named() -> None:  # a case
    kernel = module.add.prepare()
    x, y = ones(first), ones(second)
    with refused(NAMES[1], "device 0", "an earlier array", "peer=True"):
        kernel[1, COUNT](x, y, x)
    with refused("device 0", "device 1", "an earlier array", "peer=True"):
        kernel[1, COUNT](y, ForeignArray(x), y)


def events_of_one_device_are_not_recorded_on_another() -> None:  # a case
    with second:
        event = bascule.event()
    with refused(NAMES[0], f"event is on {NAMES[1]}"):
        event.record(stream_of(first))
    with refused(NAMES[0], NAMES[1], "its own clock"):
        bascule.event().elapsed(event)
    p = stream_of(second)
    event.record(p)
    assert ordering(lambda: event.wait(stream_of(first)))[0][:1] == ("wait",)  # waiting across devices is allowed


def rule_12_each_event_belongs_to_the_device_that_records_it() -> None:  # a case
    kernel = module.add.prepare()
    p, c = stream_of(second), stream_of(first)
    x, y, out = ones(second, p), ones(second, p), ones(first, c)
    launcher = kernel[1, COUNT, c].options(peer=True)
    launcher(x, y, out)
    assert (out.copy_to_host() == 2).all()
    with traced() as operations:
        launcher(x, y, out)
    steps = [o for o in operations if o.kind in ("record", "wait", "launch")]
    assert [(o.kind, o.device, o.stream) for o in steps] == ordered(c, p)
    e, waited, _, f, held = steps
    assert e.event == waited.event != f.event == held.event
    assert context_of_event(e.event) == 1
    assert context_of_event(f.event) == 0


def context_of_event(event: int) -> int:
    """The device of the event: only there can it be recorded."""
    with second:
        on_second = bascule.stream()
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    code = driver.cuEventRecord(ctypes.c_void_p(event), ctypes.c_void_p(on_second.handle))
    return 1 if code == 0 else 0


def rule_12_stream_1_of_one_device_is_not_stream_1_of_the_other() -> None:  # a case
    kernel = module.add.prepare()
    x, out = ones(second), ones(first)
    launcher = kernel[1, COUNT, 1].options(peer=True)
    launcher(x, x, out)  # 1 refers to the first device, which is current
    steps = ordering(lambda: launcher(x, x, out))
    assert steps == ordered(default_stream(first, 1), default_stream(second, 1))
    assert (out.copy_to_host() == 2).all()
    # Stream 1 is also not the stream that the arrays name.
    bound = kernel[1, COUNT].options(peer=True).bind(out, x, out)
    assert [step for step in ordering(bound) if step[0] == "launch"] == [("launch", 0, 1)]
    assert len(ordering(bound)) == 5


def peer_takes_foreign_arrays_of_other_devices() -> None:  # a case
    kernel = module.add.prepare()
    p, c = stream_of(second), stream_of(first)
    x, out = ones(second, p), ones(first, c)
    foreign = ForeignArray(x)
    steps = ordering(lambda: kernel.launch(1, COUNT, (foreign, foreign, out), stream=c, peer=True))
    assert steps == ordered(c, p)
    assert (out.copy_to_host() == 2).all()


def masked(device: bascule.Device, stream: Any) -> tuple[np.ma.MaskedArray, bascule.DeviceArray]:
    host = np.ma.array(np.arange(COUNT, dtype="f4"), mask=np.arange(COUNT) % 3 == 1)
    with device:
        return host, bascule.to_device(host, stream=stream)


def sum_of_valid(array: object, out: bascule.DeviceArray, host: np.ma.MaskedArray, **options: Any) -> None:
    kernel = bascule.compile(SUM_VALID).sum
    kernel.launch(1, 1, (array, out), peer=True, **options)
    assert out.copy_to_host().tolist() == [host.sum(), host.count()]


def peer_takes_masks_of_other_devices() -> None:  # a case
    p, c = stream_of(second), stream_of(first)
    host, x = masked(second, p)
    out = bascule.device_array(2, "f4", stream=c)
    bits = np.packbits(~host.mask, bitorder="little")
    with second:
        packed = bascule.to_device(bits, stream=p)
    for mask in (
        ForeignArray(x.mask),
        ForeignArray(x.mask, stream=None),
        ForeignArray(packed, shape=(COUNT,), typestr="|t1", strides=None),
    ):
        sum_of_valid(ForeignArray(x, mask=mask), out, host, stream=c)
    sum_of_valid(ForeignArray(x, mask=bascule.to_device(~host.mask, stream=c)), out, host, stream=c)
    on_first = bascule.to_device(host.data, stream=c)
    sum_of_valid(ForeignArray(on_first, mask=ForeignArray(x.mask)), out, host, stream=c)
    sum_of_valid(ForeignArray(on_first, mask=ForeignArray(x.mask)), out, host)


def without_peer_a_mask_of_another_device_is_refused_with_both_named() -> None:  # a case
    kernel = bascule.compile(SUM_VALID).sum.prepare()
    _, x = masked(second, stream_of(second))
    data, out = ones(first), ones(first)
    with refused("argument 1 'x'", "'mask'", "device 1", "device 0", "peer=True"):
        kernel[1, 1](ForeignArray(data, mask=ForeignArray(x.mask)), out)


def rule_12_a_mask_is_ordered_with_the_stream_of_its_own_device() -> None:  # a case
    p, q, c = stream_of(second), stream_of(second), stream_of(first)
    host, x = masked(second, p)
    out = bascule.device_array(2, "f4", stream=c)
    with second:
        mask = bascule.to_device(~host.mask, stream=q)
    foreign = ForeignArray(x, mask=ForeignArray(mask))
    viewed = bascule.as_cuda_array(foreign)
    launcher = bascule.compile(SUM_VALID).sum[1, 1, c].options(peer=True)
    for array in (foreign, viewed):
        launcher(array, out)
        assert ordering(lambda array=array: launcher(array, out)) == ordered(c, p, q)
    assert out.copy_to_host().tolist() == [host.sum(), host.count()]
    # Stream 1 of the second device is not stream 1 of the first.
    _, on_default = masked(second, None)
    launcher = bascule.compile(SUM_VALID).sum[1, 1, 1].options(peer=True)
    near = ones(first)
    launcher(on_default, near)
    assert ordering(lambda: launcher(on_default, near)) == ordered(default_stream(first, 1), default_stream(second, 1))


def an_array_of_another_device_is_assigned_by_the_drivers_copies() -> None:  # a case
    p, q = stream_of(first), stream_of(second)
    x, y = ones(first, p), ones(second, q)
    y.fill(5)
    with p:
        assert ordering(lambda: x.__setitem__(slice(None), y)) == ordered(p, q, kind="copy")
    assert (x.copy_to_host() == 5).all()
    y.fill(6)
    x[::2] = y[::2]
    assert (x.copy_to_host() == np.where(np.arange(COUNT) % 2 == 0, 6, 5)).all()
    default = ordering(lambda: x.__setitem__(slice(None), y))
    assert ("copy", 0, 1) in default  # the two name different streams
    x[:] = y.astype("f8")[1]
    assert (x.copy_to_host() == 6).all()


def foreign_arrays_are_viewed_where_they_lie() -> None:  # a case
    p = stream_of(second)
    view = bascule.as_cuda_array(ForeignArray(ones(second, p)))
    assert (view.device, view.stream) == (second, p)
    silent = bascule.as_cuda_array(ForeignArray(ones(second), stream=None))
    assert silent.stream.device == second
    assert (silent.copy_to_host() == 1).all()


def a_handle_of_another_device_is_known_as_that_devices_stream() -> None:  # a case
    p = stream_of(second)
    assert bascule.external_stream(p.handle).device == second
    kernel, x = module.add.prepare(), ones(second)
    kernel[1, COUNT](x, x, x)
    launch = ordering(lambda: kernel[1, COUNT, p.handle](x, x, x))[2]
    assert launch == ("launch", 1, p.handle)


def a_graph_with_memory_of_its_own_is_ordered_on_its_device() -> None:  # a case
    with second:
        kernel, x = module.add, ones(second)
        kernel.prepare(x, x, x)
        bascule.zeros(COUNT, "f4").fill(0)
        bascule.synchronize()
        graph = bascule.Graph()
        with graph:
            z = bascule.zeros(COUNT, "f4")
            kernel[1, COUNT](x, x, z)
        for stream in (bascule.stream(), bascule.stream()):
            graph.launch(stream)
        assert (z.copy_to_host() == 2).all()


def a_device_that_does_not_exist_is_refused() -> None:  # a case
    with refused("there is no device 2", "2 devices"):
        bascule.device(2)
    with refused("`device` must be a bascule.Device or its number", "'0'"):
        bascule.device("0")


def report(file: str, cases: dict[str, Any]) -> None:
    """Runs the cases of a file and prints the outcomes."""
    outcomes = {}
    with open(file, encoding="utf-8") as text:
        names = [
            line[4:].partition("(")[0]
            for line in text
            if line.startswith("def ") and line.rstrip().endswith("# a case")
        ]
    for name in names:
        try:
            cases[name]()
            outcomes[name] = ""
        except Exception:
            outcomes[name] = traceback.format_exc()
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    report(__file__, globals())
