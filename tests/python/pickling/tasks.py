"""Functions that the tests' other processes import and run."""

from __future__ import annotations

import os

import numpy as np

import bascule


def launch(kernel, _=None):
    """Returns the process ID, the result of `offset` on zeros, and how often NVRTC was called here."""
    x = bascule.zeros(4, "f4")
    kernel[1, 4](x, 3, 4)
    return os.getpid(), x.copy_to_host().tolist(), bascule.cache.stats().nvrtc_calls


def call(rule, _=None):
    """Returns the same as `launch`, through a launch rule."""
    x = bascule.to_device(np.zeros(4, "f4"))
    rule(x, 3, 4)
    return os.getpid(), x.copy_to_host().tolist(), bascule.cache.stats().nvrtc_calls


def compile_together(barrier, results, text):
    """Compiles at the same moment as other processes."""
    bascule.current_device()
    bascule._bascule._nvrtc_info()
    barrier.wait(timeout=120)
    kernel = bascule.compile(text)["k"]
    kernel.prepare()
    results.put((bascule.cache.stats().nvrtc_calls, kernel.origin))


def hold_lock(path, ready):
    """Locks a file until this process is killed."""
    import fcntl
    import signal

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ready.set()
        signal.pause()
