"""Processes that compile programs into the cache on disk, several at once."""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import IO, Any, NamedTuple

from bascule import _bascule, _errors, cache, config


class Program(NamedTuple):
    """A job for a worker: a module's own image, or one of its kernels."""

    title: str
    recipe: tuple[Any, ...]
    reference: tuple[Any, ...] | None


# The result of a job: the program's origin, milliseconds in NVRTC, the cache's warnings, and the error if it failed.
Outcome = tuple[str, float, list[str], Exception | None]


class Event(NamedTuple):
    """Reports one finished program."""

    title: str  # such as 'scale<float>', or the names of a module's kernels
    origin: str  # 'compiled', or 'disk' if it was there before; empty if it failed
    milliseconds: float  # time in NVRTC when the program was compiled
    error: Exception | None  # None if it did not fail
    done: int  # number of finished programs, including this one
    total: int


def compile_programs(
    programs: Sequence[Program],
    *,
    workers: int | None = None,
    progress: bool = True,
    on_event: Callable[[Event], None] | None = None,
) -> list[Event]:
    """Compile all programs into the cache on disk. Errors are in the returned events.

    The default number of workers is the number of processors. `on_event` is called in this thread when a program is
    done. Ctrl-C, or an exception that `on_event` raises, ends all workers.
    """
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise _errors.ArgumentTypeError(f"`workers` is a number of processes, got {type(workers).__name__}")
    if workers is not None and workers < 1:
        raise _errors.ArgumentValueError(f"`workers` must be at least 1, got {workers}")
    require_cache()
    team = [_Worker() for _ in range(min(len(programs), workers or len(os.sched_getaffinity(0))))]
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in team:
        idle.put(worker)

    def compile(program: Program) -> Outcome:
        worker = idle.get()
        try:
            return worker.compile(program)
        except Exception as error:
            return "", 0.0, [], error
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(max(len(team), 1))
    events: list[Event] = []
    warned: set[str] = set()
    try:
        outcomes = {pool.submit(compile, program): program for program in programs}
        with _bar(len(programs), progress) as show:
            for done, outcome in enumerate(as_completed(outcomes), 1):
                origin, milliseconds, warnings, error = outcome.result()
                event = Event(outcomes[outcome].title, origin, milliseconds, error, done, len(programs))
                events.append(event)
                warned.update(warnings)
                show(event)
                if on_event is not None:
                    on_event(event)
    finally:
        for worker in team:
            worker.end()
        pool.shutdown(cancel_futures=True)
        for worker in team:
            worker.wait()
    for text in sorted(warned):
        _errors.warn(text, _errors.CacheWarning)
    return events


def require_cache() -> None:
    if not cache.directory() or cache.limit_bytes == 0:
        raise _errors.CacheError(
            "Nothing was compiled ahead: there is no cache on disk, where the processes that compile leave the "
            "programs. Name a directory in BASCULE_CACHE_DIR before importing bascule."
        )
    if _bascule._cache_is_disabled():
        raise _errors.CacheError(
            "Nothing was compiled ahead: within bascule.cache.disabled() no program would be taken from the cache."
        )


class _Worker:
    """Runs one process at a time: starts it at the first program, and again if it died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._results: IO[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._ended = False

    def compile(self, program: Program) -> Outcome:
        """Compile a program. Raises errors of the process; errors of the program are in the outcome."""
        process = self._running()
        assert process.stdin is not None
        assert self._results is not None
        try:
            pickle.dump((program.recipe, program.reference), process.stdin)
            process.stdin.flush()
            outcome: Outcome = pickle.load(self._results)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._death(process, program) from None
        return outcome

    def end(self) -> None:
        """Kill the process and start no other one."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()

    def wait(self) -> None:
        """Wait until the process has ended. Call `end` first, and no `compile` afterwards."""
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError), self._process:
                pass
        for file in (self._results, self._output):
            if file is not None:
                file.close()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise _errors.CompileError("the processes that compile were ended")
            if self._process is None:
                self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `wait`
                self._process, self._results = _start(self._output)
            return self._process

    def _death(self, process: subprocess.Popen[bytes], program: Program) -> Exception:
        with self._lock:
            process.kill()
            status = process.wait()
            self._process = None
            assert self._results is not None
            self._results.close()
        assert self._output is not None
        self._output.seek(0)
        printed = self._output.read()[-2000:].decode(errors="replace").strip()
        how = f"was ended by signal {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return _errors.CompileError(
            f"the process that compiled {program.title} {how}." + (f" It printed:\n{printed}" if printed else "")
        )


def _start(output: IO[bytes]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a process whose output goes to `output`. Return it and the file from which its results are read."""
    if not sys.executable:
        raise _errors.CompileError(
            "sys.executable is empty, so no Python process can be started to compile: set it to the path of python."
        )
    limit = cache.limit_bytes
    environment = {
        **os.environ,
        "BASCULE_CACHE_DIR": cache.directory(),
        "BASCULE_CACHE_LIMIT": "unlimited" if limit is None else f"{limit}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])),
    }
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bascule._compile_worker", str(writing)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=[writing],
            start_new_session=True,  # so that Ctrl-C reaches only this process, which ends the others
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # if the process has died, the first job reports it
        pickle.dump((config.nvrtc_library, config.include_paths), process.stdin)
    return process, os.fdopen(reading, "rb")


@contextlib.contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Callable[[Event], None]]:
    """Show a progress bar of rich. Shows nothing without rich, or if stderr is neither a terminal nor a notebook."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        wanted = False
    if not wanted or total == 0 or not ((console := Console(stderr=True)).is_terminal or console.is_jupyter):
        yield lambda event: None
        return
    columns = (
        TextColumn("compiling"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f}"),
        TextColumn("{task.elapsed:.0f} s"),
        TextColumn("{task.fields[last]}"),
    )
    bar = Progress(*columns, console=console)
    task = bar.add_task("", total=total, last="")
    if not console.is_jupyter:
        with bar:
            yield lambda event: bar.update(task, advance=1, last=event.title)
        return
    # Not used in Jupyter: rich's own display needs ipywidgets there and does not show the last update.
    from IPython.display import display

    shown: Any = display(bar.make_tasks_table(bar.tasks), display_id=True)  # type: ignore[no-untyped-call]

    def show(event: Event) -> None:
        bar.update(task, advance=1, last=event.title if event.done < total else "")
        shown.update(bar.make_tasks_table(bar.tasks))

    yield show
