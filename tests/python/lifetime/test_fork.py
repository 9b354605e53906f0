"""Processes that fork: before the first use both sides work, after it the child is told what it lacks."""

from __future__ import annotations

import pytest

from .processes import USE, run

WORK = """
def work():
    x = array()
    bascule.compile(SOURCE).increment[1, 256](x, 256)
    assert (x.copy_to_host() == 1).all()
"""


def test_before_the_first_use_both_sides_work() -> None:
    ended = run(
        WORK
        + """
child = os.fork()
work()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_after_it_each_first_use_of_the_child_says_what_to_do_and_the_parent_goes_on() -> None:
    ended = run(
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
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_child_forked_while_other_threads_launch_does_not_hang() -> None:
    """It takes no lock that one of them may have held."""
    ended = run(
        USE
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on warns of such a fork
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
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


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
    """'spawn' works always; 'fork' works until the parent itself has used the device."""
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
