"""Kernels in the processes of multiprocessing and of Dask: one compile is enough for a machine."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

import bascule

from . import rules, tasks

spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def own_text(request):
    """A program that no other test compiles."""
    return f"// {request.node.name}\n{rules.TEXT}"


def test_a_pool_of_spawned_processes_finds_what_the_parent_compiled(own_text):
    kernel = bascule.compile(own_text).offset
    kernel.prepare(bascule.zeros(1, "f4"), 1, 1)
    with spawn.Pool(2) as pool:
        outcomes = pool.starmap_async(tasks.launch, [(kernel, i) for i in range(4)]).get(timeout=120)
        by_rule = pool.starmap_async(tasks.call, [(rules.offset, i) for i in range(2)]).get(timeout=120)
    assert all(values == [3] * 4 for _, values, _ in outcomes + by_rule)
    assert all(calls == 0 for _, _, calls in outcomes)
    assert os.getpid() not in {process for process, _, _ in outcomes}


@pytest.mark.parametrize("count", [2, 6])
def test_processes_that_miss_at_once_compile_once(count, own_text):
    barrier, results = spawn.Barrier(count), spawn.SimpleQueue()
    text = f"// {own_text.splitlines()[0]}\n#include <cuda_fp16.h>\n__global__ void k(float* p) {{ *p = 1; }}"
    processes = [spawn.Process(target=tasks.compile_together, args=(barrier, results, text)) for _ in range(count)]
    for process in processes:
        process.start()
    outcomes = []
    for process in processes:
        process.join(timeout=180)
        assert process.exitcode == 0
        outcomes.append(results.get())
    assert sorted(outcomes) == [(0, "disk")] * (count - 1) + [(1, "compiled")]


def test_nothing_of_a_lock_stays(own_text):
    def locks():  # of other tests too, which kill processes that compile
        return {name for name in os.listdir(bascule.cache.directory()) if name.endswith(".lock")}

    before = locks()
    bascule.compile(own_text).negate.prepare()
    assert locks() <= before


def test_the_lock_of_a_killed_process_is_free(own_text):
    """The system has unlocked the file, which stays until the next compile."""
    before = set(os.listdir(bascule.cache.directory()))
    bascule.compile(own_text).negate.prepare()
    (entry,) = {name for name in os.listdir(bascule.cache.directory()) if name.endswith(".0")} - before
    bascule.cache.clear()
    lock = os.path.join(bascule.cache.directory(), f"{entry[:32]}.lock")
    ready = spawn.Event()
    holder = spawn.Process(target=tasks.hold_lock, args=(lock, ready))
    holder.start()
    assert ready.wait(timeout=120)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(timeout=120)
    assert os.path.exists(lock)
    os.unlink(os.path.join(bascule.cache.directory(), entry))
    kernel = bascule.compile(own_text).negate
    kernel.prepare()
    assert kernel.origin == "compiled"
    assert not os.path.exists(lock)


@pytest.mark.filterwarnings("ignore")
def test_workers_of_dask_compile_once(own_text, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    rule = {}
    exec(
        "import bascule\n@bascule.kernel(TEXT)\ndef offset(p, by, n):\n    return n\n",
        {"TEXT": own_text, "__name__": "__main__"},
        rule,
    )
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
    )
    with cluster, distributed.Client(cluster, timeout=120) as client:
        workers = list(client.scheduler_info()["workers"])
        kernel = bascule.compile(own_text).offset  # a template: its instance is not compiled yet
        futures = [client.submit(tasks.launch, kernel, i, workers=[workers[i % 2]]) for i in range(6)]
        outcomes = client.gather(futures)
        rules_found = client.gather(
            [client.submit(tasks.call, rule["offset"], i, workers=[workers[i % 2]], pure=False) for i in range(2)]
        )
    assert all(values == [3] * 4 for _, values, _ in outcomes + rules_found)
    calls = {process: count for process, _, count in outcomes}
    assert len(calls) == 2
    assert sum(calls.values()) == 1
