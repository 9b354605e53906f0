"""Launches on a stream that is busy: one that waits for the driver must not keep other Python threads waiting."""

from __future__ import annotations

import pytest

from .processes import USE, run

# The host function is Python: it returns once the thread of the device has taken the GIL. PyDLL does not release it.
PROGRAM = (
    USE
    + """
import ctypes, pathlib, sys
driver = ctypes.PyDLL(str(pathlib.Path(bascule.__file__).with_name("libbascule_emulator.so")))
stream = bascule.stream()
x = array(256, stream)
launch = {launch}
launch()
stream.synchronize()

launches, launched_before = 0, []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: launched_before.append(launches))
sys.setswitchinterval(1e6)  # the GIL is not taken away
assert driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None) == 0
while not launched_before:
    launch()
    launches += 1
sys.setswitchinterval(0.005)
stream.synchronize()
print(511 <= launched_before[0] <= 1024 + 64)  # that of the launch which lets it run is not counted
"""
)


@pytest.mark.parametrize("launch", ["lambda: kernel[1, 256](x, 256)", "kernel[1, 256].bind(x, 256)"])
def test_the_gil_is_held_over_512_launches_and_released_before_the_driver_is_full(launch: str) -> None:
    ended = run(PROGRAM.replace("{launch}", launch), BASCULE_EMULATED_EXECUTE="0", BASCULE_EMULATED_SCHEDULE="threads")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("True\n", "", 0)
