"""The rules of order on two devices. Run by test_devices.py, like two_devices.py.

For rules 8 to 10 with every driver call failing in turn, see tests/runtime/every_call_fails_test.cpp.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
from conftest import ForeignArray, traced
from raw_driver import current
from scene import in_threads
from two_devices import (
    COUNT,
    KINDS,
    current_context,
    default_stream,
    first,
    module,
    ones,
    ordered,
    ordering,
    refused,
    report,
    second,
    stream_of,
)

import bascule

GONE = 0xDEAD0  # not a stream


def on_both() -> tuple[bascule.Stream, bascule.Stream]:
    """A stream of the second device and one of the first, with the kernel loaded and events in the pool."""
    p, c = stream_of(second), stream_of(first)
    x, out = ones(second, p), ones(first, c)
    kernel = module.add.prepare()
    kernel[1, COUNT, p](x, x, x)
    kernel[1, COUNT, c].options(peer=True)(x, x, out)
    synchronize()
    return p, c


def synchronize() -> None:
    for device in (first, second):
        with device:
            bascule.synchronize()


def foreign(array: bascule.DeviceArray, stream: bascule.Stream | None) -> ForeignArray:
    return ForeignArray(array, stream=None if stream is None else stream.handle)


def rule_1_without_producers_there_is_only_the_launch() -> None:  # a case
    p, c = on_both()
    there, here = foreign(ones(second), None), foreign(ones(first), None)
    synchronize()
    assert ordering(lambda: module.add[1, COUNT, p](there, there, there)) == ordered(p)
    synchronize()
    peer = module.add[1, COUNT, c].options(peer=True)
    assert ordering(lambda: peer(there, there, here)) == ordered(c)
    synchronize()


def rule_2_producers_of_both_devices_are_waited_for_and_wait_in_turn() -> None:  # a case
    p, c = on_both()
    q = stream_of(first)
    x, y, out = ones(second, p), ones(first, q), ones(first, c)
    for a, b in [(x, y), (foreign(x, p), foreign(y, q))]:
        launch = module.add[1, COUNT, c].options(peer=True)
        assert ordering(lambda launch=launch, a=a, b=b: launch(a, b, out)) == ordered(c, p, q)


def rule_3_a_producer_that_is_the_launch_stream_needs_no_event() -> None:  # a case
    p, _ = on_both()
    x = ones(second, p)
    assert ordering(lambda: module.add[1, COUNT, p](x, x, x)) == ordered(p)
    assert ordering(lambda: module.add[1, COUNT](x, x, x)) == ordered(p)
    assert ordering(lambda: x.fill(2)) == ordered(p, kind="fill")


def rule_4_arrays_on_one_stream_of_the_other_device_share_its_events() -> None:  # a case
    p, c = on_both()
    x, y, out = ones(second, p), ones(second, p), ones(second, p)
    peer = module.add[1, COUNT, c].options(peer=True)
    assert ordering(lambda: peer(x, y, out)) == ordered(c, p)


def rule_5_a_threads_default_streams_of_two_devices_are_two() -> None:  # a case
    on_both()
    with second:
        x = bascule.to_device(np.ones(COUNT, "f4"), stream=2)
    with first:
        out = bascule.to_device(np.ones(COUNT, "f4"), stream=2)
    synchronize()
    peer = module.add[1, COUNT, 2].options(peer=True)
    with first:
        assert ordering(lambda: peer(x, x, out)) == ordered(default_stream(first, 2), default_stream(second, 2))


def rule_6_a_view_made_with_sync_false_is_not_ordered() -> None:  # a case
    p, c = on_both()
    view, out = bascule.as_cuda_array(foreign(ones(second, p), p), sync=False), ones(first, c)
    synchronize()
    peer = module.add[1, COUNT, c].options(peer=True)
    assert ordering(lambda: peer(view, view, out)) == ordered(c)


def rule_7_any_bad_argument_leaves_the_trace_empty() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first, c)
    peer = module.add[1, COUNT, c].options(peer=True)
    with refused("argument 3 'out'", "stream"):
        peer(x, x, ForeignArray(out, stream=0))
    with refused("argument 2 'b'"):
        peer(x, ForeignArray(x, typestr="<f8"), out)


def rule_8_a_producer_that_is_gone_stops_a_launch_over_two_devices() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first, c)
    bad = ForeignArray(x, stream=GONE)
    before = current_context()
    peer = module.add[1, COUNT, c].options(peer=True)
    with traced() as operations:
        try:
            peer(x, bad, out)
        except bascule.Error as error:
            message = str(error)
    assert [o for o in operations if o.kind in KINDS] == []
    assert hex(GONE) in message, message
    assert current_context() == before
    peer(x, x, out)
    assert (out.copy_to_host() == 2).all()


def rule_9_a_launch_that_fails_leaves_both_devices_usable() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first, c)
    silent = foreign(x, None)
    synchronize()
    before = current_context()
    failed = False
    with traced() as operations:
        try:
            module.add[1, COUNT, GONE].options(peer=True)(silent, silent, silent)
        except bascule.Error:
            failed = True
    assert failed
    assert [o for o in operations if o.kind in KINDS] == []
    assert current_context() == before
    module.add[1, COUNT, c].options(peer=True)(x, x, out)
    assert (out.copy_to_host() == 2).all()


def rule_11_events_of_two_devices_are_not_shared_by_threads() -> None:  # a case
    on_both()
    threads, launches = 6, 10
    streams = [(stream_of(second), stream_of(first)) for _ in range(threads)]
    arrays = [(ones(second, p), ones(first, c)) for p, c in streams]
    synchronize()
    together = threading.Barrier(threads)

    def work(number: int) -> None:
        (x, out), (_, c) = arrays[number], streams[number]
        launcher = module.add[1, COUNT, c].options(peer=True)
        together.wait()
        for _ in range(launches):
            launcher(x, x, out)

    with traced() as operations:
        in_threads([lambda number=number: work(number) for number in range(threads)])
    steps = [o for o in operations if o.kind in ("record", "wait", "launch")]
    newest: dict[int, int] = {}
    for o in steps:
        if o.kind == "record":
            newest[o.event] = o.stream
        if o.kind == "wait":
            (pair,) = ({p.handle, c.handle} for p, c in streams if o.stream in (p.handle, c.handle))
            assert newest[o.event] in pair - {o.stream}
    for p, c in streams:
        own = [(o.kind, o.device, o.stream) for o in steps if o.stream in (p.handle, c.handle)]
        assert own == ordered(c, p) * launches


def rule_12_whatever_context_was_current_stays_current() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first, c)
    peer = module.add[1, COUNT, c].options(peer=True)
    for device in (first, second):
        with current(device):
            before = current_context()
            peer(x, x, out)
            out[:] = x
            x.fill(1)
            out.copy_to_host()
            assert current_context() == before


def rule_13_producers_on_the_other_device_are_ordered_around_each_launch_of_a_graph() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first, c)
    synchronize()
    with bascule.Graph() as graph:
        module.add[1, COUNT].options(peer=True)(foreign(x, p), foreign(x, p), foreign(out, None))
    for _ in range(2):
        assert ordering(lambda: graph.launch(c)) == ordered(c, p, kind="graph launch")
    assert (out.copy_to_host() == 2).all()


def rule_13_another_librarys_capture_refuses_a_producer_on_the_other_device() -> None:  # a case
    p, c = on_both()
    x, out = ones(second, p), ones(first)
    synchronize()
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    graph = ctypes.c_void_p()
    peer = module.add[1, COUNT, c].options(peer=True)
    with current(first):
        assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(c.handle), 0) == 0
    try:
        with refused("argument 1 'a'", hex(p.handle), "as_cuda_array(x, sync=False)", "The capture goes on."):
            peer(foreign(x, p), foreign(x, p), foreign(out, None))
    finally:
        with current(first):
            assert driver.cuStreamEndCapture(ctypes.c_void_p(c.handle), ctypes.byref(graph)) == 0
    assert driver.cuGraphDestroy(graph) == 0


def rules_14_and_15_owners_are_kept_until_the_launchs_own_device_is_done() -> None:  # a case
    p, c = on_both()
    x, out = foreign(ones(second, p), p), ones(first, c)
    alive = weakref.ref(x)
    module.add[1, COUNT, c].options(peer=True)(x, x, out)
    del x
    gc.collect()
    p.synchronize()  # also waits for the launch, but c's owners are released by a wait for c or its device
    with second:
        bascule.synchronize()
    gc.collect()
    assert alive() is not None
    with first:
        bascule.synchronize()
    gc.collect()
    assert alive() is None


if __name__ == "__main__":
    report(__file__, globals())
