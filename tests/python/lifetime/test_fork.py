"""Processes that fork: before the first use both sides work, after it the child gets an error that explains why."""

from __future__ import annotations

import pytest

from .processes import USE, ends_well, run

WORK = """
def work():
    x = array()
    bascule.compile(SOURCE).increment[1, 256](x, 256)
    assert (x.copy_to_host() == 1).all()
"""


def test_before_the_first_use_both_sides_work() -> None:
    ends_well(
        WORK
        + """
child = os.fork()
work()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    )


def test_after_it_each_first_use_of_the_child_says_what_to_do_and_the_parent_goes_on() -> None:
    ends_well(
        USE
        + """
stream, event = bascule.stream(), bascule.event()
x = array(256, stream)
launcher, bound = kernel[1, 256], kernel[1, 256].bind(x, 256)
launcher(x, 256)
bound()
uses = {
    "to_device": array,
    "launch": lambda: launcher(x, 256),
    "bound launch": bound,
    "stream": bascule.stream,
    "synchronize": bascule.synchronize,
    "stream.synchronize": stream.synchronize,
    "event.record": lambda: event.record(stream),
    "copy_to_host": x.copy_to_host,
    "astype": lambda: x.astype("f8"),
    "compile": lambda: bascule.compile(SOURCE.replace("+= 1", "+= 2")),
}
child = os.fork()
if not child:
    for name, use in uses.items():
        try:
            use()
            print(name, "went through")
        except bascule.CudaError as error:
            text = str(error)
            if "forked" not in text or "'spawn'" not in text:
                print(name, "says", text)
    del x, stream, event, launcher, bound, kernel, module, uses
    gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
launcher(x, 256)
bound()
assert (x.copy_to_host() == 4).all()
"""
    )


def test_a_child_forked_while_other_threads_launch_does_not_hang() -> None:
    """The child's call takes no lock that another thread may have held at the fork."""
    ends_well(
        USE
        + """
stop = threading.Event()
def loop():
    stream = bascule.stream()
    while not stop.is_set():
        kernel[1, 256, stream](array(256, stream), 256)
threads = [threading.Thread(target=loop) for _ in range(3)]
for thread in threads:
    thread.start()
x, launcher = array(), kernel[1, 256]
launcher(x, 256)
for _ in range(20):
    child = os.fork()
    if not child:
        try:
            launcher(x, 256)
        except bascule.CudaError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
"""
    )


COMPILES = """
import signal

def text(n):
    return f"__global__ void forked(int* p) {{ *p = {n}; }} // {os.environ['OF_TEST']}"

def compiled_in_child(n, before=lambda: None):
    # What a forked child says of a compile.
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(30)
        before()
        try:
            bascule.compile(text(n), options=options)
            answer = b"compiled"
        except bascule.LibraryError as error:
            answer = str(error).encode()
        os.write(write, answer)
        os._exit(0)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0, "it hung"
    return os.read(read, 10_000).decode()

options = bascule.CompileOptions(arch="compute_80")
hold = bascule._bascule._hold_compiles
"""


@pytest.mark.parametrize("thread", ["threading.Thread", "main"])
def test_a_child_forked_while_nvrtc_compiles_says_what_to_do_and_the_parent_compiles_on(thread: str) -> None:
    begin = """
others = [threading.Thread(target=bascule.compile, args=(text(1),), kwargs={"options": options})]
others[0].start()
"""
    if thread == "main":  # the wait for the compile is interrupted, and the compile continues
        begin = """
others = []
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    bascule.compile(text(1), options=options)
except KeyboardInterrupt:
    pass
signal.signal(signal.SIGALRM, signal.SIG_DFL)
"""
    ends_well(
        COMPILES
        + "hold(True)\n"
        + begin
        + """
time.sleep(0.3)  # it is held
for _ in range(10):
    said = compiled_in_child(2, lambda: hold(False))
    assert "forked while another thread" in said and "'spawn'" in said, said
hold(False)
for other in others:
    other.join()
bascule.compile(text(1), options=options)
bascule.compile(text(3), options=options)
""",
        OF_TEST=f"held {thread}",
    )


def test_a_child_forked_after_a_compile_compiles() -> None:
    ends_well(
        COMPILES
        + """
for n in range(20):
    bascule.compile(text(n), options=options)
    assert compiled_in_child(100 + n) == "compiled"
""",
        OF_TEST="after",
    )


def test_children_forked_in_the_midst_of_real_compiles_never_hang() -> None:
    ends_well(
        COMPILES
        + """
bascule.compile(text(1000), options=options)  # which imports what it needs: Python's locks are Python's
stop = threading.Event()
def loop():
    n = 1000
    while not stop.is_set():
        n += 1
        bascule.compile(text(n), options=options)
thread = threading.Thread(target=loop)
thread.start()
for n in range(20):
    said = compiled_in_child(n, lambda: (bascule.cache.stats(), bascule.cache.clear()))
    assert said == "compiled" or "'spawn'" in said, said
stop.set()
thread.join()
""",
        OF_TEST="midst",
    )


SPAWNED = """
import numpy as np
import bascule

def work(_):
    kernel = bascule.compile("__global__ void increment(float* p) { p[threadIdx.x] += 1; }").increment
    x = bascule.to_device(np.zeros(32, "f4"))
    kernel[1, 32](x)
    return float(x.copy_to_host().sum())
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing_gives_answers_or_the_clear_error(tmp_path, method: str) -> None:
    """'spawn' always works; 'fork' works until the parent itself has used the device."""
    (tmp_path / "spawned.py").write_text(SPAWNED)
    ended = run(
        f"""
sys.path.insert(0, {str(tmp_path)!r})
import multiprocessing
import spawned

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    if {method!r} == "fork":
        with context.Pool(2) as pool:
            print(pool.map(spawned.work, range(2)))
    print(spawned.work(0))
    with context.Pool(1) as pool:
        try:
            print(pool.map(spawned.work, range(1)))
        except bascule.CudaError as error:
            print("forked" in str(error) and "'spawn'" in str(error))
    print(spawned.work(0))
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    before = ["[32.0, 32.0]"] if method == "fork" else []
    assert ended.stdout.splitlines() == [*before, "32.0", "[32.0]" if method == "spawn" else "True", "32.0"]
