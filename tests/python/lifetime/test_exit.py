"""Whatever is in use when the interpreter ends, the process exits with status 0 and prints nothing."""

from __future__ import annotations

from textwrap import dedent

import pytest

from .processes import USE, ends_well, run

PROGRAMS = {
    "a launch in an atexit handler": """
        x = array()
        def last():
            kernel[1, 256](x, 256)
            bascule.synchronize()
            assert (x.copy_to_host() == 1).all()
            kernel[1, 256](array(), 256)
        atexit.register(last)
    """,
    "the first use of all in an atexit handler": """
        def first():
            other = bascule.compile(SOURCE.replace("increment", "later")).later
            x = array()
            other[1, 256](x, 256)
            assert (x.copy_to_host() == 1).all()
        atexit.register(first)
    """,
    "daemon threads that launch": """
        started = threading.Barrier(4)
        def loop():
            stream, first = bascule.stream(), True
            while True:
                x = array(256, stream)
                kernel[1, 256, stream](x, 256)
                x.astype("f8")
                if first:
                    started.wait()
                first = False
        for _ in range(3):
            threading.Thread(target=loop, daemon=True).start()
        started.wait()
    """,
    "daemon threads that synchronise": """
        started = threading.Barrier(4)
        def loop():
            stream, first = bascule.stream(), True
            while True:
                x, event = array(4096, stream), bascule.event()
                kernel[16, 256, stream](x, 4096)
                event.record(stream)
                event.synchronize()
                stream.synchronize()
                x.copy_to_host()
                if first:
                    started.wait()
                first = False
        for _ in range(3):
            threading.Thread(target=loop, daemon=True).start()
        started.wait()
    """,
    "a daemon thread that compiles": """
        started = threading.Event()
        def loop():
            number = 0
            while True:
                number += 1
                bascule.compile(SOURCE.replace("+= 1", f"+= {number}.25f")).increment.prepare()
                started.set()
        threading.Thread(target=loop, daemon=True).start()
        started.wait()
    """,
    "daemon threads in Python code that a launch calls": """
        sys.setswitchinterval(1e-5)
        class Foreign:
            def __init__(self, array):
                self.array = array
            @property
            def __cuda_array_interface__(self):
                return dict(self.array.__cuda_array_interface__)
        started = threading.Barrier(4)
        def loop():
            stream, first = bascule.stream(), True
            while True:
                x = Foreign(array(64, stream))
                kernel[1, 64, stream](x, 64)
                bascule.as_cuda_array(x)
                if first:
                    started.wait()
                first = False
        for _ in range(3):
            threading.Thread(target=loop, daemon=True).start()
        started.wait()
    """,
    "kernels, arrays and streams in cycles of module globals": """
        class Node:
            pass
        a, b = Node(), Node()
        a.other, b.other = b, a
        a.array, b.kernel, a.module, b.stream, a.event = array(), kernel, module, bascule.stream(), bascule.event()
        a.launcher = kernel[1, 256, b.stream]
        b.bound = a.launcher.bind(a.array, 256)
        b.bound()
        a.event.record(b.stream)
    """,
    "finalisers that launch while modules are torn down": """
        class Late:
            def __init__(self, kernel, array):
                self.kernel, self.array = kernel, array
            def __del__(self):
                self.kernel[1, 256](self.array, 256)
        late = Late(kernel, array())
        cycle = Late(kernel, array())
        cycle.itself = cycle
        sys.late = Late(kernel, array())
        builtins.late = Late(kernel, array())
    """,
    "arrays that C extensions hold": """
        x = array()
        kernel[1, 256](x, 256)
        lent = np.asarray(bascule.pinned_array(8, "f4"))
        tensor = x.__dlpack__()
        import ctypes
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kernel[1, 256].bind(x, 256)))
    """,
    "pending work": """
        streams = [bascule.stream() for _ in range(4)]
        events = [bascule.event() for _ in range(4)]
        arrays = [array(256, stream) for stream in streams]
        for i in range(4):
            kernel[1, 256, streams[i]](arrays[i], 256)
            events[i].record(streams[i])
            streams[(i + 1) % 4].wait(events[i])
        view, converted = arrays[0][2:5], arrays[1].astype("f8")
    """,
    "pending work and an exception in flight": """
        try:
            try:
                kernel[1, 256](array(), 256)
                raise KeyError
            finally:
                kernel[1, 256](array(), 256)
        except KeyError:
            kernel[1, 256](array(), 256)
            sys.exit(0)
    """,
    "sys.exit in a thread": """
        def leave():
            kernel[1, 256](array(), 256)
            sys.exit(3)
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    """,
    "a thread that outlives the main one": """
        main = threading.main_thread()
        def outlive():
            main.join()
            x = array()
            kernel[1, 256](x, 256)
            assert (x.copy_to_host() == 1).all()
        threading.Thread(target=outlive).start()
    """,
    "os._exit": """
        kernel[1, 256](array(), 256)
        os._exit(0)
    """,
    "an allocator of Python's": """
        taken = {}
        def allocate(size, stream):
            before = bascule.set_allocator(None)
            x = bascule.device_array(size, "u1")
            bascule.set_allocator(before)
            address = x.__cuda_array_interface__["data"][0]
            taken[address] = x
            return address
        def deallocate(address, size, stream):
            del taken[address]
        bascule.set_allocator((allocate, deallocate))
        x = array()
        kernel[1, 256](x, 256)
        sys.kept = x.astype("f8")
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_ends_with_status_0_and_says_nothing(name: str) -> None:
    opening = "" if "first use" in name else USE
    ends_well(opening + dedent(PROGRAMS[name]))


@pytest.mark.parametrize("schedule", ["eager", "threads", "random:7"])
@pytest.mark.parametrize("name", ["pending work"])
def test_so_it_does_under_every_policy(name: str, schedule: str, emulated: None) -> None:
    ends_well(USE + dedent(PROGRAMS[name]), BASCULE_EMULATED_SCHEDULE=schedule)


def test_an_exception_that_nobody_catches_is_the_only_thing_said() -> None:
    ended = run(USE + "kernel[1, 256](array(), 256)\nraise KeyError('mine')")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0].startswith("Traceback")
    assert ended.stderr.splitlines()[-1] == "KeyError: 'mine'"


# Each launch of `long` would run for ever.
LONG = """
long = bascule.compile("__global__ void k(volatile int* p) { while (p[0] == 0) {} }").k
x = bascule.to_device(np.zeros(64, "i4"))
long.prepare()
queued = threading.Event()
"""
WAITING = {
    "in a launch or synchronize": "bascule.synchronize()",
    "for a copy": "x.copy_to_host()",
    "for a stream": "stream.synchronize()",
    "for nothing": "threading.Event().wait()",
}


SCHEDULES = ["eager", "lazy", "threads", "random:7"]
# Each schedule with each way to wait, and in turn with one of the two checks.
WAYS = [
    (schedule, wait, ["memory", "races"][(i + j) % 2])
    for i, schedule in enumerate(SCHEDULES)
    for j, wait in enumerate(WAITING)
]


@pytest.mark.parametrize(("schedule", "wait", "checks"), WAYS)
def test_work_that_a_daemon_thread_has_queued_does_not_keep_the_process(
    schedule: str, wait: str, checks: str, emulated: None
) -> None:
    program = f"""
        def work():
            stream = bascule.stream()
            queued.set()
            for _ in range(50):
                long[1, 64, stream](x)
            {WAITING[wait]}
        y = array()  # before the others: with a random schedule a thread that issues work may have to run theirs
        kernel[1, 256](y, 256)
        threading.Thread(target=work, daemon=True).start()
        queued.wait()
    """
    ends_well(
        USE + LONG + dedent(program),
        BASCULE_EMULATED_SCHEDULE=schedule,
        BASCULE_EMULATED_CHECKS=checks,
        BASCULE_EMULATED_TIMEOUT="inf",
    )


@pytest.mark.parametrize(("schedule", "checks"), [("lazy", "races"), ("threads", "memory")])
def test_neither_does_work_of_the_main_thread(schedule: str, checks: str, emulated: None) -> None:
    program = "for _ in range(50):\n    long[1, 64](x)\n"
    ends_well(
        USE + LONG + program,
        BASCULE_EMULATED_SCHEDULE=schedule,
        BASCULE_EMULATED_CHECKS=checks,
        BASCULE_EMULATED_TIMEOUT="inf",
    )


def test_what_an_exit_handler_waits_for_is_done(emulated: None) -> None:
    """A handler registered before the import runs after all of Bascule's handlers, and can still use the device."""
    program = """
        x = array()
        for _ in range(3):
            kernel[1, 256](x, 256)
    """
    first = """
import atexit
def last():
    assert (x.copy_to_host() == 3).all()
    print("done")
atexit.register(last)
"""
    ends_well(
        USE + dedent(program), first, BASCULE_EMULATED_SCHEDULE="lazy", BASCULE_EMULATED_CHECKS="memory", says="done\n"
    )
