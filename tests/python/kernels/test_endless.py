"""Kernels that never end: the emulated device detects them, and a signal ends them in every state of the program."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

POLICIES = ["eager", "lazy", "threads", "random:3"]

# Every endless kernel sets a flag in host memory before its loop. Then a thread prints "ready".
OPENING = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import bascule

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background

module = bascule.compile(r'''
__device__ __noinline__ int twice(volatile int* p, int n) {
    return n == 0 ? p[1] : twice(p, n - 1) + twice(p, n - 1);
}
__global__ void barriers(volatile int* p, volatile int* runs) {
    for (*runs = 1;;) { __syncthreads(); if (p[1]) break; }
}
__global__ void recursion(volatile int* p, volatile int* runs) { *runs = 1; p[0] = twice(p, 60); }
__global__ void mutual(volatile int* p, volatile int* runs) { *runs = 1; while (p[threadIdx.x / 32 ^ 1] == 0) {} }
__global__ void atomics(int* p, volatile int* runs) { for (*runs = 1;;) atomicAdd(p, 1); }
__global__ void printing(volatile int* p, volatile int* runs) { for (*runs = 1;;) printf("%s", ""); }
__global__ void same_memory(volatile int* p, volatile int* runs) {
    *runs = 1;
    for (int i = 0;; ++i) p[threadIdx.x] = i;
}
__global__ void increment(int* p) { p[threadIdx.x] += 1; }
''')
runs = bascule.pinned_array(1, "i4")
seen = np.asarray(runs)
seen[0] = 0

def array():
    return bascule.to_device(np.zeros(64, "i4"))

def announce():
    while not seen[0]:
        time.sleep(0.001)
    print("ready", flush=True)

module.increment[1, 64](array())
bascule.synchronize()
faulthandler.dump_traceback_later(50)  # where it was, if it has to be killed
threading.Thread(target=announce, daemon=True).start()
"""


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    """Starts the program without a time limit, so that only the test ends the kernel."""
    return subprocess.Popen(
        [sys.executable, "-c", OPENING + textwrap.dedent(program)],
        env={**os.environ, "BASCULE_DEVICE": "emulated", "BASCULE_EMULATED_TIMEOUT": "inf", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], again: int | None = None) -> tuple[str, str]:
    """Returns the output of the process until its end. Repeats the signal `again` until then, because a program may not
    wait yet when the first one arrives."""
    try:
        for _ in range(10 if again else 0):
            try:
                return process.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                process.send_signal(again)
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        stacks = stacks_of(process.pid)
        process.kill()
        pytest.fail("the program did not end:\n" + "\n".join([stacks, *process.communicate()]))
    finally:
        process.kill()


def stacks_of(pid: int) -> str:
    """Every thread's stack with function names, if a debugger is installed."""
    if shutil.which("gdb") is None:
        return "(no gdb, which would tell its threads' calls)"
    command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 24"]
    text = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout
    frames = re.findall(r"^(?:Thread \d+|#\d+ +(?:0x\w+ in )?([^(]+))", text, re.MULTILINE)
    return "\n".join(name.strip()[-90:] or "a thread:" for name in frames)


def interrupt(program: str, number: int = signal.SIGINT, **environment: str) -> subprocess.Popen[str]:
    """Starts the program, and sends the signal as soon as its endless kernel runs."""
    process = start(program, **environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", finish(process)
    process.send_signal(number)
    return process


# Waits of the main thread while the endless kernel runs. The program has launched the kernel before.
WAITS = {
    "the launch": "",
    "synchronize": "bascule.synchronize()",
    "a stream": "stream.synchronize()",
    "an event": "event.record(stream); event.synchronize()",
    "a copy": "x.copy_to_host()",
    "an allocation in its order": "y = x.copy(); y.copy_to_host()",
    "a free": "del x; bascule.synchronize()",
}


# A kernel runs in its launch only under `eager`. The waits are divided between `threads` and `random`.
WAYS = [
    *(("eager", wait) for wait in WAITS),
    *(("lazy", wait) for wait in list(WAITS)[1:]),
    *((policy, wait) for i, policy in enumerate(("threads", "random:3")) for wait in list(WAITS)[1 + i :: 2]),
]


@pytest.mark.parametrize(("policy", "wait"), WAYS)
def test_ctrl_c_ends_a_kernel_whatever_waits_for_it(policy: str, wait: str) -> None:
    program = f"""
    stream, event, x = bascule.stream(), bascule.event(), array()
    bascule.synchronize()
    try:
        module.barriers[2, 64, stream](x, runs)
        {WAITS[wait]}
    except KeyboardInterrupt as error:
        print("interrupted", *getattr(error, "__notes__", []))
    """
    process = interrupt(program, BASCULE_EMULATED_SCHEDULE=policy)
    output, errors = finish(process)
    assert process.returncode == 0, errors
    assert output.startswith("interrupted")
    # Under `threads` the kernel runs before the program waits for it; under `random` another call may run it.
    if policy in ("eager", "lazy"):
        assert "kernel 'barriers'" in output
    assert errors == ""


@pytest.mark.parametrize("kernel", ["barriers", "recursion", "mutual", "atomics", "printing", "same_memory"])
def test_ctrl_c_ends_every_kernel_and_the_session_goes_on(kernel: str) -> None:
    process = interrupt(
        f"""
        x = array()
        try:
            module.{kernel}[2, 64](x, runs)
        except KeyboardInterrupt:
            print("interrupted")
        y = array()
        module.increment[1, 64](y)
        print(y.copy_to_host().sum())
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    output, errors = finish(process)
    assert (process.returncode, output.split()) == (0, ["interrupted", "64"]), errors


def test_work_that_was_dropped_is_never_taken_for_done() -> None:
    """Under `lazy` one wait runs many launches: after Ctrl-C it is not known which of them are complete."""
    process = interrupt(
        """
        x, y = array(), array()
        bascule.synchronize()
        module.barriers[1, 64](x, runs)
        module.increment[1, 64](y)
        try:
            bascule.synchronize()
        except KeyboardInterrupt:
            pass
        try:
            y.copy_to_host()
        except bascule.CudaError as error:
            print(error)
        """,
        BASCULE_EMULATED_SCHEDULE="lazy",
    )
    output, errors = finish(process)
    assert process.returncode == 0, errors
    assert "(702)" in output
    assert "interrupted: kernel 'barriers'" in output


def test_ctrl_c_ends_a_graph_of_endless_kernels() -> None:
    process = interrupt(
        """
        x = array()
        module.barriers.prepare()
        with bascule.Graph() as graph:
            for _ in range(20):
                module.barriers[1, 64](x, runs)
        try:
            graph.launch()
            bascule.synchronize()
        except KeyboardInterrupt:
            print("interrupted")
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    assert finish(process)[0] == "interrupted\n"


def test_ctrl_c_reaches_a_main_thread_that_waits_for_another_threads_kernel() -> None:
    process = interrupt(
        """
        x, errors = array(), []
        def work():
            try:
                module.barriers[1, 64](x, runs)
                bascule.synchronize()
            except bascule.CudaError as error:
                errors.append(str(error))
        thread = threading.Thread(target=work)
        try:
            thread.start()
        except KeyboardInterrupt:  # the kernel runs already
            pass
        while True:
            try:
                while thread.is_alive():
                    bascule.synchronize()
                break
            except (KeyboardInterrupt, bascule.CudaError):
                pass  # the signal may have arrived between two waits
        assert "interrupted: kernel 'barriers'" in errors[0], errors
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    errors = finish(process, again=signal.SIGINT)[1]
    assert process.returncode == 0, errors


def test_a_second_ctrl_c_ends_a_program_whose_other_thread_runs_an_endless_kernel() -> None:
    """Python waits for its threads at the end; the second KeyboardInterrupt ends that wait."""
    process = interrupt(
        """
        thread = threading.Thread(target=lambda: module.barriers[1, 64](array(), runs))
        try:
            thread.start()  # may be interrupted too: the kernel runs before it returns
            thread.join()
        except KeyboardInterrupt:
            print("once", flush=True)
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "once\n"
    process.send_signal(signal.SIGINT)
    finish(process, again=signal.SIGINT)  # print() may not have returned yet when the second signal arrives
    assert process.returncode is not None


@pytest.mark.parametrize("policy", POLICIES)
def test_sigterm_ends_the_process(policy: str) -> None:
    process = interrupt(
        """
        x = array()
        module.barriers[1, 64](x, runs)
        bascule.synchronize()
        """,
        signal.SIGTERM,
        BASCULE_EMULATED_SCHEDULE=policy,
    )
    finish(process)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("policy", POLICIES)
def test_handlers_of_signals_run_while_a_kernel_runs(policy: str) -> None:
    """If the handler raises nothing, the kernel continues; an exception ends it."""
    process = interrupt(
        """
        x = array()
        def first(number, frame):
            signal.signal(signal.SIGTERM, second)
            print("first", flush=True)  # the next signal may come at once
        def second(number, frame):
            sys.exit(7)
        signal.signal(signal.SIGTERM, first)
        module.barriers[1, 64](x, runs)
        bascule.synchronize()
        """,
        signal.SIGTERM,
        BASCULE_EMULATED_SCHEDULE=policy,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"
    process.send_signal(signal.SIGTERM)
    errors = finish(process)[1]
    assert process.returncode == 7, errors


def test_a_thread_that_holds_the_gil_while_it_waits_lets_the_signal_through() -> None:
    """A thread drops the last reference to an array, and freeing its memory waits for the main thread's kernel."""
    process = interrupt(
        """
        x = array()
        y = [array()]
        def work():
            while not seen[0]:
                pass
            y.clear()
        thread = threading.Thread(target=work)
        thread.start()
        try:
            module.barriers[1, 64](x, runs)
        except KeyboardInterrupt:
            print("interrupted")
        thread.join()
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    output, errors = finish(process)
    assert (process.returncode, output) == (0, "interrupted\n"), errors


def test_ctrl_c_in_an_atexit_handler_ends_the_kernel_there() -> None:
    process = interrupt(
        """
        import atexit
        def last():
            try:
                module.barriers[1, 64](array(), runs)
                bascule.synchronize()
            except KeyboardInterrupt:
                print("interrupted")
        atexit.register(last)
        """,
        BASCULE_EMULATED_SCHEDULE="eager",
    )
    output, errors = finish(process)
    assert (process.returncode, output) == (0, "interrupted\n"), errors


def report_of(statement: str, **environment: str) -> str:
    process = start(
        f"""
        x = array()
        try:
            {statement}
            bascule.synchronize()
        except bascule.CudaError as error:
            print(error)
        """,
        **environment,
    )
    output, errors = finish(process)
    assert (process.returncode, errors) == (0, "")
    return output


@pytest.mark.parametrize("kernel", ["barriers", "recursion", "mutual", "atomics", "printing", "same_memory"])
def test_a_limit_in_seconds_ends_every_kernel(kernel: str) -> None:
    report = report_of(f"module.{kernel}[2, 64](x, runs)", BASCULE_EMULATED_TIMEOUT="0.2")
    assert "(702)" in report
    assert f"timeout: kernel '{kernel}'" in report
    assert "the kernel has run for 0.2 s, as long as BASCULE_EMULATED_TIMEOUT allows" in report


@pytest.mark.slow  # takes 10 s
def test_without_a_limit_a_block_that_makes_no_progress_is_an_infinite_loop() -> None:
    report = report_of("module.barriers[1, 64](x, runs)", BASCULE_EMULATED_TIMEOUT="")
    assert "this looks like an infinite loop: for 10 s no thread of the block has ended" in report
    assert "in the loop that begins at" in report
    assert "barriers" in report


@pytest.mark.parametrize("value", ["soon", "0", "-1", "10s", "nan"])
def test_a_limit_that_is_no_number_of_seconds_is_refused(value: str) -> None:
    process = start("", BASCULE_EMULATED_TIMEOUT=value)
    errors = finish(process)[1]
    assert process.returncode == 1
    assert f"BASCULE_EMULATED_TIMEOUT is '{value}'; it must be a number of seconds above 0, or inf" in errors
