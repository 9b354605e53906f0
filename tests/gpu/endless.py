"""Ctrl-C and process exit while a kernel runs forever: each case must end within a few seconds, or it hangs.

    python tests/gpu/endless.py [--out FILE] [CASE...]

Each case is a separate process. It launches the kernel and waits in one of Bascule's ways; then it is sent SIGINT, or
it ends by itself. The script measures the seconds until KeyboardInterrupt arrived and until the process was gone. It
exits with 1 if a case took longer than GOAL seconds. A process that hangs writes its native stacks first.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from collect import STACKS, replace
from thread_exit import write_stacks

SCALE = float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
GOAL = 5.0 * SCALE
LIMIT = 10.0 * SCALE  # seconds after which a process is ended
OPENING = """
import atexit, ctypes, sys, threading, time
import numpy as np
import bascule
try:
    ctypes.CDLL(STACKS)
except OSError:
    pass
kernels = bascule.compile('''
__global__ void endless(volatile int* flag) { while (*flag == 0) {} }
__global__ void nothing() {}
__global__ void seconds(volatile int* flag, long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
''')
endless, nothing, seconds = kernels.endless.prepare(), kernels.nothing.prepare(), kernels.seconds.prepare()
stream = bascule.stream()
flag, other = bascule.zeros(1, "i4", stream=stream), bascule.zeros(1, "i4")
event = bascule.event()
stream.synchronize()
def start():
    endless[1, 1, stream](flag)
    event.record(stream)
    print("started", flush=True)
def interrupted(wait):
    start()
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
def fill_the_queue():
    while True:
        nothing[1, 1, stream]()
"""
# The rest of each program, and whether its process is sent SIGINT.
CASES: dict[str, tuple[str, bool]] = {
    "Ctrl-C in synchronize()": ("interrupted(bascule.synchronize)", True),
    "Ctrl-C in stream.synchronize()": ("interrupted(stream.synchronize)", True),
    "Ctrl-C in event.synchronize()": ("interrupted(event.synchronize)", True),
    "Ctrl-C in copy_to_host()": ("interrupted(flag.copy_to_host)", True),
    "Ctrl-C in repr": ("interrupted(lambda: repr(flag))", True),
    "Ctrl-C at a full queue": ("interrupted(fill_the_queue)", True),
    "Ctrl-C in time.sleep": ("interrupted(lambda: time.sleep(60))", True),
    "Ctrl-C in a graph's launch behind it": (
        "with bascule.Graph() as graph:\n    nothing[1, 1]()\n"
        "interrupted(lambda: [graph.launch(stream) for _ in range(100_000)])",
        True,
    ),
    "the end of the program": ("start()", False),
    "sys.exit": ("start()\nsys.exit(0)", False),
    "an exception": ("start()\nraise SystemExit(0)", False),
    "the end, with arrays dropped": ("start()\ndel flag, other", False),
    "the end, with exported arrays": (
        "kept = [bascule.device_array(1 << 20, 'u1') for _ in range(80)]\n"
        "told = [x.__cuda_array_interface__ for x in kept]\nstart()\ndel kept, told",
        False,
    ),
    "the end, with a module dropped": ("start()\ndel endless, nothing, seconds, kernels", False),
    "the end, with a thread that waits": (
        "start()\nthreading.Thread(target=bascule.synchronize, daemon=True).start()\ntime.sleep(0.5)",
        False,
    ),
    "the end behind a kernel of 2 s": (
        "seconds[1, 1, stream](flag, 1000 if EMULATED else 4_000_000_000)\nprint('started', flush=True)",
        False,
    ),
    "os._exit": ("start()\nimport os\nos._exit(0)", False),
}


def program_of(name: str) -> str:
    opening = OPENING.replace("STACKS", repr(str(STACKS)))
    emulated = 'EMULATED = hasattr(ctypes.CDLL(bascule._bascule._driver_info()["path"]), "bascule_emulated_abi")\n'
    return opening + emulated + CASES[name][0] + '\nprint("ends", flush=True)\n'


def outcome_of(name: str) -> dict[str, Any]:
    with subprocess.Popen(
        [sys.executable, "-c", program_of(name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        if said != "started":
            child.kill()
            return {"how": "did not start", "stderr": child.communicate()[1][-1500:]}
        if CASES[name][1]:
            time.sleep(1.0)
            child.send_signal(signal.SIGINT)
        start = time.monotonic()
        found: dict[str, Any] = {}
        timer = concurrent.futures.ThreadPoolExecutor(1).submit(watch, child)
        for line in child.stdout:
            found[line.strip()] = round(time.monotonic() - start, 2)
        child.wait()
        found["gone"] = round(time.monotonic() - start, 2)
        hung = timer.result()
        assert child.stderr is not None
        errors = child.stderr.read()
    found["status"] = child.returncode
    found["how"] = f"did not end within {LIMIT:.0f} s" if hung else "ended"
    if errors.strip():
        found["stderr"] = errors[-6000:]
    return found


def watch(child: subprocess.Popen[str]) -> bool:
    """Waits for the process. If it hangs, makes it write its stacks, kills it and returns True."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        if child.poll() is not None:
            return False
        time.sleep(0.05)
    write_stacks(child.pid)
    time.sleep(0.3)
    child.kill()
    return True


def is_well(name: str, found: dict[str, Any]) -> bool:
    if found["how"] != "ended" or found["gone"] > GOAL:
        return False
    return not CASES[name][1] or found.get("interrupted", LIMIT) <= GOAL


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in CASES]:
        parser.error(f"no case is called {unknown[0]!r}; there are {', '.join(CASES)}")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    # Disables the emulated device's short time limit, which would end these kernels. A GPU's driver has no limit.
    os.environ.setdefault("BASCULE_EMULATED_TIMEOUT", "inf")
    os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "threads")
    results: dict[str, Any] = {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = {pool.submit(outcome_of, name): name for name in options.cases or CASES}
        for done in concurrent.futures.as_completed(running):
            name = running[done]
            results[name] = done.result()
            print(f"{name}: {'' if is_well(name, results[name]) else 'NOT WELL '}{results[name]}", flush=True)
            if options.out:
                replace(options.out, json.dumps(results, indent=1) + "\n")
    return int(not all(is_well(name, found) for name, found in results.items()))


if __name__ == "__main__":
    sys.exit(main())
