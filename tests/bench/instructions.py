"""Counts the instructions of a launch with callgrind: exact where a clock on a shared machine is not.

    python tests/bench/instructions.py [--update] [--json FILE] [--by-function CASE]

`ours` is what a warm launch takes without the driver (everything inside calls into the emulated device's library),
without the producers (everything inside calls into the C types of the passed arrays, and freeing their dicts), and
without what CPython takes to call a function that does nothing. Anything else that CPython does for a launch counts as
ours. Each case is called N and 2 N times, and the cost of the second N is divided by N.
The ways to write a launch in a loop are compared with a loop that calls a kept launcher and evaluates the same
expression on an object of an extension type that does nothing.
A case that grew by more than 5 % and 10 instructions over tests/bench/instructions.json fails; --update rewrites that
file. A goal that is not met is not a failure. --by-function shows the instructions of one case by function.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import measuring  # noqa: F401 (finds the package of this tree)

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "instructions.json"
CALLS = 1280  # a multiple of 64: the lifetime queue sets a marker once for 64 launches
WARM = 200
MOST_GROWTH = 0.05
LEAST_GROWTH = 10  # instructions: fewer are noise
WAYS = ("k[g, b]", "m.k[g, b]", "k[g, b, stream]", "k.forall(n)")
# The goals of the rows N1, each with the 412 instructions that CPython takes to release the GIL, and of the rows N2.
GOALS = {"own": 1350, "exchange": 1700, "interface": 2400, "bound": 730, **dict.fromkeys(WAYS, 100)}
WHAT = {
    "own": "3 arrays of bascule, a float",
    "exchange": "3 arrays by an exchange table, a float",
    "interface": "3 interface dicts, a float",
    "uninterned": "the same, keys not interned",
    "foreign": "3 arrays, one of them on another stream",
    "bound": "3 arrays and a float, bound",
    "own, 16 arrays": "16 arrays of bascule, a float",
    "compile again": "bascule.compile of the same text",
    "copy": "x.copy() of 4 KiB, and the copy's end",
    "tensor map": "2 arrays of bascule, a map of another, a float",
    "tensor map, exchange": "2 arrays by an exchange table, a map of another, a float",
    "tensor map, dict": "2 interface dicts, a map of another, a float",
    "tensor map, bf16": "2 arrays by an exchange table, a map of bf16, a float",
    "tensor map, fp8": "2 arrays by an exchange table, a map of fp8, a float",
    **{way: f"{way}(...), beyond a kept launcher" for way in WAYS},
}
COMPARED = " beside"  # ends the name of the loop with which a way is compared
DRIVER = "libbascule_emulator"
BASCULE = "_bascule."
PRODUCERS = ("bench_native", "exchange_native")
LOOP = ("count_calls", "invoke")  # of bench_native: the callers, which do not count as callees
GIL_FUNCTIONS = ("PyEval_SaveThread", "PyEval_RestoreThread")
RECURSION = re.compile(r"'\d+$")  # callgrind numbers recursive entries of a function

Function = tuple[str, str]  # the object file's name, the function's


@dataclass
class Profile:
    """Instructions of each function itself, and of its calls of each other function."""

    own: Counter[Function] = field(default_factory=Counter)
    calls: Counter[tuple[Function, Function]] = field(default_factory=Counter)

    def __sub__(self, other: Profile) -> Profile:
        difference = Profile(Counter(self.own), Counter(self.calls))
        difference.own.subtract(other.own)
        difference.calls.subtract(other.calls)
        return difference

    def inside(self, *objects: str) -> int:
        """All instructions in calls from elsewhere into these object files."""
        return sum(
            count
            for ((caller, _), (callee, _)), count in self.calls.items()
            if callee.startswith(objects) and not caller.startswith(objects)
        )

    def freed(self) -> int:
        """CPython's instructions to free objects for the extension module."""
        return sum(
            count
            for ((caller, _), (_, name)), count in self.calls.items()
            if caller.startswith(BASCULE) and name == "_Py_Dealloc"
        )

    def with_the_gil(self) -> int:
        """CPython's instructions to release and reacquire the GIL for the extension module."""
        return sum(
            count
            for ((caller, _), (_, name)), count in self.calls.items()
            if caller.startswith(BASCULE) and name in GIL_FUNCTIONS
        )

    def own_of(self, *objects: str) -> int:
        return sum(count for (where, _), count in self.own.items() if where.startswith(objects))

    def loop(self) -> int:
        return sum(count for (where, name), count in self.own.items() if where.startswith(PRODUCERS) and name in LOOP)

    def inclusive(self) -> Counter[Function]:
        total = Counter(self.own)
        for (caller, _), count in self.calls.items():
            total[caller] += count
        return total


def read_profile(path: Path) -> tuple[str, Profile]:
    """Returns the dump's name and contents. Names are written in full, costs are one number a line."""
    profile, name = Profile(), ""
    at, callee = ["", ""], ["", ""]
    called = False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("desc: Trigger: Client Request: "):
            name = line.removeprefix("desc: Trigger: Client Request: ")
        elif equals and key in ("ob", "fn", "cob", "cfn"):
            if key == "ob":
                at[0] = callee[0] = Path(value).name
            elif key == "fn":
                at[1] = RECURSION.sub("", value)
                callee[0] = at[0]
            elif key == "cob":
                callee[0] = Path(value).name
            else:
                callee[1] = RECURSION.sub("", value)
        elif key == "calls":
            called = True
        elif re.match(r"[+*\d-]", line):
            count = int(line.split()[1])
            function = (at[0], at[1])
            if called:
                profile.calls[function, (callee[0], callee[1])] += count
                callee[0] = at[0]
                called = False
            else:
                profile.own[function] += count
    return name, profile


def child() -> None:
    """Runs under callgrind: every case N times, then 2 N times."""
    import gc

    from launches import Launches, bench_native

    import bascule

    launches = Launches()
    gc.disable()
    for name, (function, arguments) in launches.cases().items():
        for count in (WARM, CALLS, 2 * CALLS):
            bascule.synchronize()  # every count begins without kept owners for the stream
            bench_native.count_calls(function, arguments, count, f"{name}: {count}")
    for name, loops in launches.ways().items():
        for loop, named in zip(loops, (name, name + COMPARED), strict=True):
            for count in (WARM, CALLS, 2 * CALLS):
                bascule.synchronize()
                bench_native.count_calls(loop, (range(count),), 1, f"{named}: {count}")


def count() -> dict[str, Profile]:
    """The cost of CALLS calls of every case."""
    if shutil.which("valgrind") is None:
        sys.exit("instructions: valgrind is missing; install the Debian package valgrind")
    with tempfile.TemporaryDirectory(prefix="bascule-bench-") as directory:
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
            "BASCULE_CACHE_DIR": os.path.join(directory, "cache"),
            "BASCULE_DEVICE": "emulated",
            "BASCULE_EMULATED_ARCH": "90",  # for tensor maps
            "BASCULE_EMULATED_EXECUTE": "0",
            "BASCULE_EMULATED_WORKERS": "1",
        }
        # NVRTC would take a minute under valgrind: this fills the disk cache first.
        compiled = subprocess.run([sys.executable, "-c", "from launches import Launches; Launches()"], env=environment)
        if compiled.returncode != 0:
            sys.exit("instructions: the kernels could not be compiled; the lines above say why")
        out = os.path.join(directory, "profile")
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        options += ["--compress-strings=no", "--compress-pos=no", "--dump-line=no"]
        command = ["valgrind", *options, sys.executable, __file__, "--child"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"instructions: callgrind failed:\n{run.stderr}")
        profiles = dict(map(read_profile, Path(directory).glob("profile.*")))
    names = [name.removesuffix(f": {CALLS}") for name in profiles if name.endswith(f": {CALLS}")]
    return {name: profiles[f"{name}: {2 * CALLS}"] - profiles[f"{name}: {CALLS}"] for name in names}


def figures(profiles: dict[str, Profile]) -> dict[str, dict[str, float]]:
    """Instructions of one call of every case, without those of a call that does nothing."""
    nothing = profiles["nothing"]
    calling = sum(nothing.own.values()) - nothing.loop() - nothing.inside(*PRODUCERS)
    found = {name: figures_of(profiles[name], calling) for name in WHAT}
    for way in WAYS:
        compared = figures_of(profiles[way + COMPARED], calling)
        found[way] = {what: round(count - compared[what], 1) for what, count in found[way].items()}
    return found


def figures_of(profile: Profile, calling: int) -> dict[str, float]:
    total = sum(profile.own.values()) - profile.loop() - calling
    driver, producers = profile.inside(DRIVER), profile.inside(*PRODUCERS) + profile.freed()
    counts = {
        "total": total,
        "driver": driver,
        "producers": producers,
        "ours": total - driver - producers,
        "gil": profile.with_the_gil(),
        "bascule": profile.own_of(BASCULE),
    }
    return {name: round(count / CALLS, 1) for name, count in counts.items()}


def print_table(found: dict[str, dict[str, float]], before: dict[str, dict[str, float]]) -> None:
    columns = ("total", "driver", "producers", "ours", "gil", "bascule")
    print(f"{'instructions a call':44}" + "".join(f"{name:>10}" for name in columns) + f"{'goal':>9}{'baseline':>10}")
    for name, what in WHAT.items():
        counts = found[name]
        goal = GOALS.get(name)
        told = "" if goal is None else f"<= {goal}"
        line = f"{what:44}" + "".join(f"{counts[column]:10.0f}" for column in columns) + f"{told:>9}"
        if name in before:
            line += f"{counts['ours'] / before[name]['ours'] - 1:+10.1%}"
        if goal is not None:
            line += "  met" if counts["ours"] <= goal else "  not met"
        print(line)
    print(
        "ours = total - driver - producers; of ours: gil = CPython's release of the GIL around the driver's calls, "
        "bascule = in its own library, the rest is CPython and libc"
    )


def print_functions(profile: Profile, most: int = 30) -> None:
    inclusive = profile.inclusive()
    for title, counts in (("themselves", profile.own), ("with what they call", inclusive)):
        print(f"\n{'self':>8}{'inclusive':>11}  functions by instructions {title}")
        for function, taken in counts.most_common(most):
            if taken < CALLS / 2:
                break
            where, name = function
            name = re.sub(r"\bbascule::(python::)?(\(anonymous namespace\)::)?|\(anonymous namespace\)::", "", name)
            if len(name) > 90:
                name = name[:87] + "..."
            print(f"{profile.own[function] / CALLS:8.0f}{inclusive[function] / CALLS:11.0f}  {name} [{short(where)}]")


def short(where: str) -> str:
    for prefix, name in ((BASCULE, "bascule"), (DRIVER, "driver"), *((p, p) for p in PRODUCERS)):
        if where.startswith(prefix):
            return name
    return where


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions that launches take.")
    parser.add_argument("--update", action="store_true", help=f"write {BASELINE.name} anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write what was found")
    parser.add_argument("--by-function", choices=[*WHAT, "all"], metavar="CASE", help="one of: " + "; ".join(WHAT))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child()
        return 0

    profiles = count()
    found = figures(profiles)
    python = ".".join(platform.python_version_tuple()[:2])
    baseline = (
        json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {"python": python, "cases": {}}
    )
    comparable = baseline["python"] == python
    before = baseline["cases"] if comparable else {}
    print_table(found, before)
    if not comparable:
        print(f"not compared with {BASELINE.name}, which is CPython {baseline['python']}'s; this is {python}")
    for name in WHAT if options.by_function == "all" else filter(None, [options.by_function]):
        print(f"\n{WHAT[name]}")
        print_functions(profiles[name])
    result = json.dumps({"python": python, "cases": found}, indent=2) + "\n"
    if options.json:
        options.json.write_text(result, encoding="utf-8")
    if options.update:
        BASELINE.write_text(result, encoding="utf-8")
        return 0
    grown = [
        name
        for name in before
        if found[name]["ours"] - before[name]["ours"] > max(before[name]["ours"] * MOST_GROWTH, LEAST_GROWTH)
    ]
    for name in grown:
        print(f"{name}: {found[name]['ours']:.0f} instructions are ours, {before[name]['ours']:.0f} were before")
    if grown:
        print(f"That is more than {MOST_GROWTH:.0%} more. --by-function shows where; --update accepts the new counts.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
