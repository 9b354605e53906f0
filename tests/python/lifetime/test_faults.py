"""Later errors name the launch that caused a fault, and with `bascule.debug(sync=True)` the launch itself raises."""

from __future__ import annotations

import re

import pytest

import bascule

from .processes import OPENING, run

pytestmark = pytest.mark.usefixtures("emulated")

KERNELS = """
import ctypes
module = bascule.compile('''
__global__ void past(float* p, int n) { p[threadIdx.x + n] = 1; }
__global__ void good(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 1; }
''')
x, y = array(), array()
def error_of(action):
    try:
        action()
    except bascule.CudaError as error:
        return error
    raise AssertionError("nothing was raised")
"""


def line_of(program: str, mark: str) -> int:
    whole = (OPENING + KERNELS + program).splitlines()
    return next(number for number, line in enumerate(whole, 1) if line.endswith("# " + mark))


def output_of(program: str, **environment: str) -> str:
    ended = run(KERNELS + program, **environment)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


@pytest.mark.parametrize("schedule", ["lazy", "eager", "threads"])
def test_the_next_call_of_any_thread_names_the_kernel_and_the_line_that_launched_it(schedule: str) -> None:
    program = """
module.good[1, 256](y, 256)
bascule.synchronize()
module.good[1, 256](x, 256)
module.past[1, 256](x, 1 << 20)  # culprit
first = error_of(bascule.synchronize)
found = []
thread = threading.Thread(target=lambda: found.append(error_of(lambda: array())))
thread.start()
thread.join()
assert first.launch == found[0].launch and first.launch in str(found[0]), found[0]
print(first.launch)
"""
    said = output_of(program, BASCULE_EMULATED_SCHEDULE=schedule)
    assert re.search(
        rf"It was kernel 'past' on the legacy default stream, launched at <string>:{line_of(program, 'culprit')}",
        said,
    )
    assert "good" not in said


def test_a_bound_launch_is_named_by_where_it_was_bound() -> None:
    program = """
bound = module.past[1, 256].bind(x, 1 << 20)  # bound
for _ in range(3):
    bound()
print(error_of(bascule.synchronize).launch)
"""
    assert f"'past' on the legacy default stream, launched at <string>:{line_of(program, 'bound')}" in output_of(
        program
    )


@pytest.mark.parametrize("schedule", ["lazy", "threads"])
def test_debugging_raises_from_the_launch_itself_and_names_its_arguments(schedule: str) -> None:
    program = """
good, past = module.good[1, 256], module.past[1, 256]
with bascule.debug(sync=True):
    good(x, 256)
    error = error_of(
        lambda: past(x, 77000000)  # launch
    )
    address = x.__cuda_array_interface__["data"][0]
    print(error.launch)
    assert f"with the arguments p={address:#x}, n=77000000" in str(error), error
    print(error.call)
"""
    said = output_of(program, BASCULE_EMULATED_SCHEDULE=schedule)
    assert (
        f"It was kernel 'past' on the legacy default stream, launched at <string>:{line_of(program, 'launch')}" in said
    )
    # On an asynchronous device the fault may be reported before the launch has made its last call.
    assert schedule == "threads" or said.endswith("cuStreamSynchronize\n")


def test_debugging_ends_with_its_block_and_can_be_switched_without_one(scale: bascule.Kernel) -> None:
    import numpy as np

    x = bascule.to_device(np.ones(64, "f4"))
    launcher = scale[1, 64]

    def synchronisations() -> int:
        before = bascule._bascule._driver_calls("cuStreamSynchronize")
        launcher(x, 1.0, 64)
        return bascule._bascule._driver_calls("cuStreamSynchronize") - before

    assert synchronisations() == 0
    with bascule.debug(sync=True):
        assert synchronisations() == 1
        with bascule.debug(sync=False):
            assert synchronisations() == 0
        assert synchronisations() == 1
    assert synchronisations() == 0
    bascule.debug(sync=True)
    try:
        assert synchronisations() == 1
    finally:
        bascule.debug(sync=False)
    with pytest.raises(TypeError, match="True or False"):
        bascule.debug(sync=1)  # type: ignore[arg-type]


FOREIGN = """
from pathlib import Path
driver = ctypes.CDLL(str(Path(bascule.__file__).parent / "libbascule_emulator.so"))
context, current = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuCtxCreate_v4(ctypes.byref(context), None, 0, 0) == 0
def check(what):
    assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0
    assert current.value == context.value, what
stream, event = bascule.stream(), bascule.event()
x = array(256, stream)
bound = module.good[1, 256, stream].bind(x, 256)
def refused(action, error=Exception):
    try:
        action()
    except error:
        return
    raise AssertionError("nothing was raised")
actions = {
    "launch": lambda: module.good[1, 256, stream](x, 256),
    "bound": bound, "rebind": lambda: bound.rebind(x, 255), "forall": lambda: module.good.forall(256)(x, 256),
    "new arrays": array, "pinned": lambda: bascule.pinned_array(8), "managed": lambda: bascule.managed_array(8),
    "astype": lambda: x.astype("f8"), "fill": lambda: x.fill(1), "strided": lambda: x[::3].copy(),
    "to the host": x.copy_to_host, "from the host": lambda: x.copy_from_host(np.zeros(256, "f4")),
    "assignment": lambda: x.__setitem__(slice(0, 4), 2),
    "stream": bascule.stream, "synchronize": stream.synchronize, "query": stream.query,
    "record": lambda: event.record(stream), "wait": lambda: event.wait(stream), "event": bascule.event,
    "event.synchronize": event.synchronize, "device": bascule.synchronize,
    "attributes": lambda: module.good.attributes, "occupancy": lambda: module.good.occupancy(256),
    "best block": module.good.best_block, "pointer": lambda: bascule.pointer_attributes(x),
    "compile": lambda: bascule.compile(SOURCE).increment.prepare(),
    "dlpack": lambda: bascule.from_dlpack(x), "repr": lambda: repr(x),
    "bad argument": lambda: refused(lambda: module.good[1, 256](x, "n")),
    "bad block": lambda: refused(lambda: module.good[1, 4096](x, 1)),
    "bad stream": lambda: refused(lambda: module.good[1, 256, 0xDEAD0](x, 1)),
    "bad copy": lambda: refused(lambda: x.copy_to_host(stream=0xDEAD0)),
    "too much memory": lambda: refused(lambda: bascule.device_array(1 << 50, "u1")),
    "bad image": lambda: refused(lambda: bascule.compile("__global__ void f() { nothing(); }")),
    "cooperative": lambda: refused(lambda: module.good.launch(1 << 20, 256, (x, 1), cooperative=True)),
    "many launches": lambda: [bound() for _ in range(200)] and None,
}
"""


def test_the_context_that_was_current_stays_current_also_after_errors() -> None:
    program = """
check("at first")
for name, action in actions.items():
    action()
    check(name)
del x, bound, stream, event
gc.collect()
check("destruction")
"""
    output_of(FOREIGN + program)


def test_the_context_that_was_current_stays_current_after_a_fault() -> None:
    program = """
module.past[1, 256](x, 1 << 20)
for name in ("device", "launch", "new arrays", "synchronize", "stream", "record", "astype", "attributes"):
    try:
        actions[name]()
    except bascule.CudaError:
        pass
    check(name)
"""
    output_of(FOREIGN + program)
