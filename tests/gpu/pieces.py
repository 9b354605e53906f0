"""Runs the pieces of a GPU run side by side, and writes the results after each: tests/gpu/run.sh calls it.

A piece is one command. Each pytest file is a piece. If a test ends the process, destroys the context or hangs, its
outcome records that, and the rest of the file runs in a new process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import collect
from collect import ROOT

HERE = Path(__file__).resolve().parent
LOGS = Path(os.environ.get("BASCULE_GPU_LOGS") or ROOT / "build" / "gpu" / "logs")
PYTHON_TESTS = ROOT / "tests" / "python"
# These need a network, git's history or the documentation.
LEFT_OUT = {"packaging", "docs", "test_tree", "test_rows", "test_readme"}
# Groups of Python tests that run first, the most informative one at the front. The other groups follow by name.
FIRST = ["ordering", "lifetime", "graphs", "launches", "dlpack", "producers", "conformance", "kernels"]
WITH_NVRTC = ["nvrtc", "compiler", "reflection", "specialization", "struct_probe", "variable", "prelude", "diagnostics"]
STEPS = ["first", "gpu", "race", "cpp", "python", "soak", "bench"]
# The command `--first` runs these in this order: measurements alone, then pieces that may hang or destroy a context.
FIRST_COMMAND = [
    *("first", "assumptions", "thread_exit", "bench-gpu"),
    *("captures", "memcheck", "racecheck", "library_captures", "endless", "gpu"),
    *("textures-test_sampling", "textures-test_surfaces", "kernels-test_formats", "launches-test_stack"),
    *("ordering-test_races", "driver"),  # the five files before driver failed or hung on 2026-11-27
]
# The command `--second` runs these before all the rest.
SECOND_COMMAND = ["bench-gpu-again", "soak"]
MEASURED_AGAIN = ["bascule", "cuda.core", "numba-cuda", "startup"]  # parts of tests/bench/gpu.py: a second measurement
SECONDS = {"first": 350.0, "second": 520.0, "": 1e9}  # limits of the commands
SCALE = float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # of all limits: a rehearsal has a slower device
# Seconds without the end of a test after which it counts as hung; shorter for the command `--first`.
SILENCE = 75.0
SHORT_SILENCE = 45.0
MOST_PROCESSES = 30  # of one piece
HOME_EVERY = 10.0  # seconds between two copies of results to `home`, besides those after pieces that measure


@dataclass
class Piece:
    name: str
    command: list[str]
    group: str
    alone: bool = False  # nothing runs at the same time, because it measures or its time is short
    is_pytest: bool = False
    seconds: float = 530.0
    environment: Callable[[], dict[str, str]] = dict  # called when it starts
    process: subprocess.Popen[bytes] | None = None
    processes: int = 0
    started: float = 0.0
    log: IO[bytes] | None = None

    @property
    def outcomes(self) -> Path:
        return LOGS / f"{self.name}.jsonl"

    @property
    def cache(self) -> Path:
        return LOGS.parent / "caches" / self.name

    @property
    def status(self) -> Path:
        """The file with the exit status once the piece has ended."""
        return LOGS / f"{self.name}.rc"

    def start(self) -> None:
        self.started = self.started or time.monotonic()
        self.processes += 1
        if self.processes == 1:
            shutil.rmtree(self.cache, ignore_errors=True)
        self.log = (LOGS / f"{self.name}.log").open("ab")
        environment = {**os.environ, **self.environment()}
        if self.is_pytest:
            environment["BASCULE_OUTCOMES"] = str(self.outcomes)
            environment["PYTHONPATH"] = os.pathsep.join([str(HERE), environment.get("PYTHONPATH", "")])
            # Set here because an installed package has a pytest plugin that imports it before the tests' conftest.py
            # chooses a cache directory.
            environment["BASCULE_CACHE_DIR"] = str(self.cache)
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT, start_new_session=True
        )

    def stop(self) -> None:
        """Stops the piece and all processes that it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def tell_stacks(self) -> None:
        """Makes every thread of the process write its stack to the log."""
        assert self.process is not None
        libc = ctypes.CDLL(None)
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            libc.tgkill(self.process.pid, int(thread.name), signal.SIGUSR2)
            time.sleep(0.05)  # one after the other

    def hangs(self) -> bool:
        if not self.is_pytest:
            return time.monotonic() - self.started > self.seconds * SCALE
        last = self.outcomes.stat().st_mtime if self.outcomes.exists() else 0.0
        since_start = time.time() - (LOGS / f"{self.name}.log").stat().st_ctime
        return time.time() - max(last, time.time() - since_start) > SILENCE

    def ended(self, code: int, hung: bool) -> bool:
        """Records how a process of the piece ended. Returns False if tests remain, for which another one is needed."""
        if self.log is not None:
            self.log.close()
        if self.is_pytest:
            unfinished = [name for name, test in collect.outcomes_of(self.outcomes).items() if "outcome" not in test]
            how = f"{collect.HANGS} {SILENCE:.0f} s" if hung else f"ended the process with status {code}"
            for name in unfinished:
                collect.add_outcome(self.outcomes, name, "failed", f"{how}; {self.name}.log may say more")
            again = hung or code == collect.LOST or code < 0 or bool(unfinished)
            if again and self.processes < MOST_PROCESSES:
                return False
            if code == collect.LOST:
                code = 1
            code = code or int(bool(unfinished))
        self.status.write_text(f"{collect.HUNG if hung else code}\n")
        shutil.rmtree(self.cache, ignore_errors=True)
        return True


def pytest_pieces() -> Iterator[Piece]:
    groups = [path for path in sorted(PYTHON_TESTS.iterdir()) if path.is_dir() or path.name.startswith("test_")]
    groups.sort(key=lambda path: FIRST.index(path.stem) if path.stem in FIRST else len(FIRST))
    for group in groups:
        if group.stem in LEFT_OUT or group.suffix not in ("", ".py"):
            continue
        for file in sorted(group.glob("test_*.py")) if group.is_dir() else [group]:
            name = f"{group.stem}-{file.stem}" if group.is_dir() else group.stem
            yield pytest_piece(name, file, group.stem)


def pytest_piece(name: str, file: Path, group: str) -> Piece:
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "outcomes"]
    options += ["-o", f"faulthandler_timeout={SILENCE - 10:.0f}"]
    command = [sys.executable, "-m", "pytest", str(file.relative_to(ROOT)), *options]
    # Without this variable, programs of these tests use the emulated device as libcuda.so.1.
    environment = dict if group != "driver" else lambda: {"BASCULE_TEST_DRIVER": "real"}
    return Piece(name, command, group, is_pytest=True, environment=environment)


def cpp_pieces() -> Iterator[Piece]:
    """The C++ tests to run on a GPU: those of jit that use NVRTC, and those of runtime that work with any driver."""
    for name in ("jit", "runtime"):
        program = ROOT / "build" / "dev" / "tests" / name / f"{name}_tests"
        if not program.exists():
            continue
        files = ",*".join(f"jit/{each}_test.cpp" for each in WITH_NVRTC)
        if name == "runtime":
            # The others count the emulated device's calls, start processes on it, or need another driver or device.
            watching = ("Trace", "calls_of", "emulated", "child", "FAKE_DRIVER", "Device(1)")
            if collect.facts()["emulated"]:
                watching += ("linking.hpp",)  # in the driver's place it would have to run machine code
            tests = sorted((ROOT / "tests" / "runtime").glob("*_test.cpp"))
            files = ",*".join(t.name for t in tests if not any(word in t.read_text() for word in watching))
        command = [str(program), f"--source-file=*{files}*"]
        yield Piece(f"cpp-{name}", command, "cpp", environment=collect.for_cpp_tests)


def script(name: str, option: str, *more: str, group: str = "gpu", file: str = "", **fields: Any) -> Piece:
    """A piece that runs a script of this directory, which writes its result to the file passed by `option`."""
    command = [sys.executable, str(HERE / f"{file or name}.py"), option, str(LOGS / f"{name}.json"), *more]
    return Piece(name, command, group, **fields)


def all_pieces() -> list[Piece]:
    smoke = ["--smoke", "--rounds", "3"] if collect.facts()["emulated"] else []
    gpu, every = ROOT / "tests" / "bench" / "gpu.py", ROOT / "tests" / "bench" / "all.py"
    python = [sys.executable]
    bench = [*python, str(gpu), "--json", str(LOGS / "bench-gpu.json"), *smoke]
    again = [*python, str(gpu), "--json", str(LOGS / "bench-gpu-again.json"), *smoke, "--only", *MEASURED_AGAIN]
    return [
        script("first", "--result", group="first", alone=True, seconds=100),
        script("assumptions", "--out", *smoke, alone=True, seconds=60),
        script("thread_exit", "--result", alone=True, seconds=60),
        pytest_piece("gpu", HERE / "test_on_a_gpu.py", "gpu"),
        script("race", "--result", group="race"),
        script("captures", "--out", seconds=90),
        script("library_captures", "--out", seconds=120),
        script("endless", "--out", seconds=90),
        script("memcheck", "--out", "--tool", "memcheck", file="sanitizer", seconds=130),
        script("racecheck", "--out", "--tool", "racecheck", file="sanitizer", seconds=130),
        script("planted", "--out", seconds=150),
        script("counters", "--out", seconds=90),
        script("textures", "--out"),
        script("tensor_maps", "--out"),
        script("opcodes", "--out", file="record"),
        *cpp_pieces(),
        *pytest_pieces(),
        script("soak", "--out", *smoke[:1], group="soak", alone=True, seconds=90),
        Piece("bench-gpu", bench, "bench", True, seconds=190),
        Piece("bench-gpu-again", again, "bench", True, seconds=80),
        Piece("bench-host", [*python, str(every), "--json", str(LOGS / "bench-host.json"), "--quick"], "bench", True),
    ]


def of_first_command(pieces: list[Piece]) -> list[Piece]:
    """The pieces in the order of FIRST_COMMAND."""

    def place(piece: Piece) -> int:
        return FIRST_COMMAND.index(piece.name if piece.name in FIRST_COMMAND else piece.group)

    return sorted(filter(is_first, pieces), key=place)


def is_first(piece: Piece) -> bool:
    return piece.name in FIRST_COMMAND or piece.group == "driver"


def of_second_command(pieces: list[Piece]) -> list[Piece]:
    """SECOND_COMMAND, the pieces that the first command omits, and those that it began and did not finish."""
    begun = {path.name.partition(".")[0] for path in LOGS.glob("*.log")}
    left = [piece for piece in pieces if not is_first(piece) or (piece.name in begun and not piece.status.exists())]
    return sorted(left, key=lambda piece: [*SECOND_COMMAND, piece.name].index(piece.name))


def chosen(pieces: list[Piece], only: str) -> list[Piece]:
    wanted = only.split(",")
    known = set(STEPS) | {name for piece in pieces for name in (piece.name, piece.group)}
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"tests/gpu/run.sh: no piece is called {unknown[0]}; there are {', '.join(sorted(known))}")

    def is_wanted(piece: Piece) -> bool:
        names = {piece.name, piece.group} | ({"python"} if piece.group not in STEPS else set())
        return bool(names & set(wanted))

    return [piece for piece in pieces if is_wanted(piece)]


class Run:
    """Runs pieces until the time is over. Copies the main results to `home` repeatedly (collect.bring_home)."""

    def __init__(self, pieces: list[Piece], jobs: int, seconds: float, results: Path, home: Path | None = None) -> None:
        self.waiting = pieces
        self.running: list[Piece] = []
        self.jobs = jobs
        self.until = time.monotonic() + seconds
        self.results = results
        self.home = home
        self.brought_home = 0.0

    def go(self) -> None:
        while (self.waiting or self.running) and time.monotonic() < self.until:
            self.start_more()
            time.sleep(0.05)
            for piece in list(self.running):
                self.look_at(piece)
        for piece in self.running:
            piece.stop()
        if self.waiting or self.running:
            names = ", ".join(piece.name for piece in [*self.running, *self.waiting][:10])
            print(f"stopped when its time was over; --resume goes on with {names} ...", flush=True)
        self.write(now=True)

    def write(self, now: bool) -> None:
        written = collect.write(LOGS, self.results)
        if self.home is not None and (now or time.monotonic() - self.brought_home > HOME_EVERY):
            collect.bring_home(LOGS, written, self.home)
            self.brought_home = time.monotonic()

    def start_more(self) -> None:
        while self.waiting and len(self.running) < self.jobs:
            piece = self.waiting[0]
            if self.running and (piece.alone or self.running[0].alone):
                return
            self.running.append(self.waiting.pop(0))
            piece.start()

    def look_at(self, piece: Piece) -> None:
        assert piece.process is not None
        code = piece.process.poll()
        hung = code is None and piece.hangs()
        if code is None and not hung:
            return
        if hung and piece.is_pytest and collect.STACKS.exists():
            piece.tell_stacks()
        piece.stop()
        self.running.remove(piece)
        if not piece.ended(-signal.SIGKILL if code is None else code, hung):
            self.waiting.insert(0, piece)
            return
        print(f"{time.monotonic() - piece.started:6.1f} s  {collect.line_of(piece.name, LOGS)}", flush=True)
        self.write(now=piece.alone)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the pieces of a run on a GPU and writes the results after each.")
    parser.add_argument("--only", default=",".join(STEPS))
    commands = parser.add_mutually_exclusive_group()
    for name in ("first", "second"):
        commands.add_argument(f"--{name}", dest="command", action="store_const", const=name, default="")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--jobs", type=int, default=max(1, min(12, (os.cpu_count() or 1) * 3 // 4)))
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and tests send it
    global SILENCE
    SILENCE = (SHORT_SILENCE if options.command == "first" else SILENCE) * SCALE
    LOGS.mkdir(parents=True, exist_ok=True)
    pieces = all_pieces()
    if options.command == "first":
        pieces = of_first_command(pieces)
    elif options.command == "second":
        pieces = of_second_command(pieces)
    else:
        pieces = chosen(pieces, options.only)
    home = Path(os.environ["OUT"]) if os.environ.get("OUT") else None
    results = LOGS / "collected" if home else collect.RESULTS
    if not options.resume and options.command != "second":
        for piece in pieces:
            for file in LOGS.glob(f"{piece.name}.*"):
                file.unlink()
    pieces = [piece for piece in pieces if not piece.status.exists()]
    jobs = 1 if collect.facts().get("for one process") else options.jobs
    seconds = SECONDS[options.command] * SCALE if options.seconds is None else options.seconds
    Run(pieces, jobs, seconds, results, home).go()
    summary = collect.summary_of(LOGS)
    print(json.dumps(summary["totals"]))
    return 0 if collect.is_well(summary) and all(piece.status.exists() for piece in pieces) else 1


if __name__ == "__main__":
    sys.exit(main())
