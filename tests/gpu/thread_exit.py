"""Tests whether a wait for the device returns after a thread that used its default stream has ended.

    python tests/gpu/thread_exit.py [--rounds 150] [--result FILE]

On an H100 (driver 580, CUDA 13.0) a test of ordering did not return from bascule.synchronize() in four runs of six,
always after a Python thread had launched on its default stream (handle 2) after work on the legacy default stream, and
ended. Each variant here does the same with fewer calls, in a separate process: those that hang show the cause.
Prints a line for each; exits with 1 if one hung or failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from collect import STACKS, replace

import bascule

SECONDS = 8.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
LEGACY, PER_THREAD = 1, 2
KERNEL = 'extern "C" __global__ void set(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 3; }'


class Driver:
    """The driver's own functions, without Bascule's ordering and waits."""

    def __init__(self) -> None:
        self.array = bascule.to_device(np.zeros(32, "i4"))
        self.kernel = bascule.compile(KERNEL).set.prepare()
        bascule.synchronize()
        self.d = ctypes.CDLL(bascule._bascule._driver_info()["path"])
        self.context, library = ctypes.c_void_p(), ctypes.c_void_p()
        kernel, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        image = self.kernel.ptx.encode() + b"\0"
        self.ok(self.d.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))
        self.enter()
        self.ok(self.d.cuLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0))
        self.ok(self.d.cuLibraryGetKernel(ctypes.byref(kernel), library, b"set"))
        self.ok(self.d.cuKernelGetFunction(ctypes.byref(self.function), kernel))

    @staticmethod
    def ok(code: int) -> None:
        assert code == 0, f"the driver returned CUresult {code}"

    def enter(self) -> None:
        self.ok(self.d.cuCtxSetCurrent(self.context))

    def launch(self, stream: int) -> None:
        address = ctypes.c_uint64(self.array.__cuda_array_interface__["data"][0])
        count = ctypes.c_int(32)
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (address, count)]
        parameters = (ctypes.c_void_p * 2)(*pointers)
        self.ok(self.d.cuLaunchKernel(self.function, 1, 1, 1, 32, 1, 1, 0, ctypes.c_void_p(stream), parameters, None))

    def launch_in_a_thread(self) -> None:
        self.enter()
        self.launch(PER_THREAD)

    def wait(self) -> None:
        self.enter()
        self.ok(self.d.cuCtxSynchronize())


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def driver_alone(rounds: int, *, wait_elsewhere: bool = False, stays: bool = False, pause: float = 0.0) -> None:
    """Waits in this thread or in another one, after the launching thread has ended or while it `stays`."""
    driver = Driver()
    for _ in range(rounds):
        let_go = threading.Event()
        driver.launch(PER_THREAD)
        driver.launch(LEGACY)

        def work(let_go: threading.Event = let_go) -> None:
            driver.launch_in_a_thread()
            if stays:
                let_go.wait(SECONDS)

        thread = in_thread(work)
        if not stays:
            thread.join()
        time.sleep(pause)
        if wait_elsewhere:
            in_thread(driver.wait).join()
        else:
            driver.wait()
        let_go.set()
        thread.join()


def with_bascule(rounds: int, *, watched: bool = True, pause: float = 0.0, legacy: bool = True) -> None:
    """Launches with Bascule. Waits of the main thread (`watched`) check for Ctrl-C; those of another thread do not."""
    kernel = bascule.compile(KERNEL).set.prepare()

    def run() -> None:
        for _ in range(rounds):
            own, late = bascule.external_stream(PER_THREAD), bascule.external_stream(LEGACY)
            x = bascule.as_cuda_array(bascule.to_device(np.zeros(32, "i4"), stream=own), sync=False)
            kernel[1, 32, own](x, 32)
            if legacy:
                kernel[1, 32, late](x, 32)
            in_thread(lambda x=x: kernel[1, 32, bascule.external_stream(PER_THREAD)](x, 32)).join()
            time.sleep(pause)
            bascule.synchronize()

    if watched:
        run()
    else:
        in_thread(run).join()


WAYS: dict[str, Callable[[int], None]] = {
    "the driver alone": driver_alone,
    "the driver alone, waited for in another thread": lambda n: driver_alone(n, wait_elsewhere=True),
    "the driver alone, while the thread stays": lambda n: driver_alone(n, stays=True, wait_elsewhere=True),
    "the driver alone, some time after the thread": lambda n: driver_alone(n, wait_elsewhere=True, pause=0.02),
    "Bascule": with_bascule,
    "Bascule, from a thread whose waits are not watched": lambda n: with_bascule(n, watched=False),
    "Bascule, some time after the thread": lambda n: with_bascule(n, pause=0.02),
    "Bascule, without the legacy default stream": lambda n: with_bascule(n, legacy=False),
}


def outcome_of(name: str, rounds: int) -> str:
    """Returns how the process of this way ended. If it hangs, its threads write their native stacks twice before."""
    command = [sys.executable, str(Path(__file__).resolve()), "--way", name, "--rounds", str(rounds)]
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            _, err = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            for _ in range(2):
                write_stacks(child.pid)
                time.sleep(0.2)
            child.kill()
            _, err = child.communicate()
            return f"did not end within {SECONDS:.0f} s\n{err[-12000:]}"
    if child.returncode:
        return f"failed: {err[-500:]}"
    return f"ended, {time.monotonic() - start:.1f} s"


def write_stacks(process: int) -> None:
    """Makes each thread, including those unknown to Python, write its stack to standard error: thread_stacks.c."""
    libc = ctypes.CDLL(None)
    threads = sorted(int(thread.name) for thread in Path(f"/proc/{process}/task").iterdir())
    for thread in threads if STACKS.exists() else []:
        libc.tgkill(process, thread, signal.SIGUSR2)
        time.sleep(0.05)  # one after the other


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether waits return after a thread with a default stream has ended.")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--way", choices=WAYS, help="go this way in this process")
    options = parser.parse_args()
    if options.way:
        if STACKS.exists():
            ctypes.CDLL(str(STACKS))
        faulthandler.dump_traceback_later(SECONDS - 1)
        WAYS[options.way](options.rounds)
        faulthandler.cancel_dump_traceback_later()
        return 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # side by side, because the processes measure no times
        found = pool.map(lambda way: outcome_of(way, options.rounds), WAYS)
        outcomes = dict(zip(WAYS, found, strict=True))
    print(*(f"{way}: {outcome}" for way, outcome in outcomes.items()), sep="\n")
    if options.result:
        replace(options.result, json.dumps(outcomes, indent=2) + "\n")
    return int(any(not outcome.startswith("ended") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
