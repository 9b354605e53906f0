"""Collects the output of the pieces of a GPU run in one directory of results: pieces.py calls it after each.

    python tests/gpu/collect.py LOGS RESULTS [HOME]
    python tests/gpu/collect.py --keep HOME/DATE-DEVICE [NAME]     copies downloaded results to RESULTS/DATE-DEVICE
    python tests/gpu/collect.py --row RESULTS.JSON     prints the run's row in the table of results/README.md

LOGS has NAME.rc (an exit status) for every piece that has ended, NAME.jsonl for a piece of pytest (outcomes.py),
NAME.json if it measured something, NAME.log (its output). Writes RESULTS/DATE-DEVICE/results.json, and next to it the
output and files of the measurements, in which words replace the directories of this machine. Results of other pieces of
the same commit and day are kept. HOME/DATE-DEVICE gets few files: the results, the most important others, and
logs.tar.gz with all the rest. With NAME, --keep makes RESULTS/DATE-DEVICE/results-NAME.json and so on, for a second run
of that day, perhaps at another commit.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import bascule

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "gpu" / "results"
STACKS = ROOT / "build" / "dev" / "tests" / "gpu" / "thread_stacks.so"  # lets threads write their stacks
TEXTS = (
    *("race", "first", "opcodes", "assumptions", "thread_exit", "library_captures", "endless", "memcheck", "racecheck"),
)  # their output is stored next to results.json
MOST_LINE = 600  # characters kept of a line of that output; stacks of a process that hung are in results.json
# Recorded for comparison with other devices, in separate files.
RECORDED = ("opcodes", "captures", "textures", "tensor_maps", "planted", "counters")
HUNG = 124  # the exit status of a piece that hung
LOST = 77  # the exit status of a pytest process in which a test destroyed the context
LIBRARIES = [
    *("cupy-cuda13x", "cupy-cuda12x", "torch", "jax", "numba-cuda", "mpi4py", "warp-lang", "pycuda", "rmm-cu13"),
    *("numpy", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12"),
]
DOCTEST_SUMMARY = re.compile(r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed")
HANGS = "did not end within"  # begins the text of a test that hung
LOOKED_AT_FIRST = ("results.json", "bench-gpu.json", "bench-gpu-again.json", "captures.json")
MOST_LOG = 1 << 20  # bytes of each log in the archive: its first quarter and its end
MOST_TEXT = 1500  # characters of each failure's text
MOST_SLOW, SLOW = 5, 2.0  # of each piece, at most this many tests that took at least this many seconds
MOST_ALIKE = 3  # failures of a piece whose texts are kept if they end alike


def package() -> Path:
    return Path(bascule.__file__).absolute().parent


def outcomes_of(file: Path) -> dict[str, dict[str, Any]]:
    """The recorded fields of each test by its name; there is no `outcome` while a test runs."""
    tests: dict[str, dict[str, Any]] = {}
    if file.exists():
        for text in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # truncated, because its process was killed
            tests.setdefault(line.pop("test"), {}).update(line)
    return tests


def add_outcome(file: Path, test: str, outcome: str, text: str) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write("\n" + json.dumps({"test": test, "outcome": outcome, "text": text}) + "\n")


def replace(file: Path, text: str) -> None:
    """Writes a file atomically: readers never see a part of it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)


def measured_in(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        return f"{file.name} cannot be read: {error}"


def piece(name: str, logs: Path) -> dict[str, Any]:
    """How one piece ended, and its counts or measurements; `exit` is None if it has not ended."""
    status = logs / f"{name}.rc"
    found: dict[str, Any] = {"exit": int(status.read_text()) if status.exists() else None}
    log = (logs / f"{name}.log").read_text(errors="replace") if (logs / f"{name}.log").exists() else ""
    if (outcomes := logs / f"{name}.jsonl").exists():
        found |= counted(outcomes_of(outcomes))
    elif summary := DOCTEST_SUMMARY.search(log):
        found |= {"passed": int(summary[2]), "failed": int(summary[3])}
    if (measured := logs / f"{name}.json").exists() and name not in RECORDED and not name.startswith("bench-"):
        found["measured"] = measured_in(measured)
    if found["exit"] not in (0, None) and not found.get("failed"):
        found["said"] = log[-MOST_TEXT:]
    if found["exit"] == HUNG and "hung" not in found:
        found["hung"] = 1
    return found


def counted(tests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Counts, failures with their reasons, every reason for a skip with its count, and the slowest tests.

    A test that hung has failed. `not ended` is the test that ran when its process was stopped from outside.
    """
    failures = {name: test.get("text", "") for name, test in tests.items() if test.get("outcome") == "failed"}
    alike: Counter[str] = Counter()
    failed = {}
    for name, text in failures.items():
        error = last_error(text)
        alike[error] += 1
        failed[name] = text[-MOST_TEXT:] if alike[error] <= MOST_ALIKE else ""
    skipped = Counter(test.get("reason", "") for test in tests.values() if test.get("outcome") == "skipped")
    passed = [test for test in tests.values() if test.get("outcome") == "passed"]
    slowest = sorted(tests, key=lambda name: tests[name].get("seconds", 0), reverse=True)[:MOST_SLOW]
    found = {
        "passed": len(passed),
        "failed": failed,
        "hung": sum(text.startswith(HANGS) for text in failures.values()),
        "skipped": dict(skipped),
        "on the emulated device": sum(test.get("emulated", False) for test in passed),
        "not ended": [name for name, test in tests.items() if "outcome" not in test],
        "slowest": {name: tests[name]["seconds"] for name in slowest if tests[name].get("seconds", 0) >= SLOW},
    }
    return {name: value for name, value in found.items() if value or name in ("passed", "failed", "skipped")}


def last_error(text: str) -> str:
    """The words of the last line that pytest marks as the error's, without numbers and signs, which may differ."""
    lines = text.splitlines()
    marked = [line for line in lines if line.startswith("E ") and line[1:].strip()]
    return " ".join(re.findall(r"[A-Za-z_]{2,}", (marked or lines or [""])[-1]))


def number_failed(piece: dict[str, Any]) -> int:
    """The number of failed tests; for a piece that counts no tests, one if it failed or hung."""
    failed = piece.get("failed", {})
    number = failed if isinstance(failed, int) else len(failed)
    return number or int("passed" not in piece and piece["exit"] not in (0, 5, None))


def versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of the running tree, from git or from the pack."""
    if (packed := ROOT / "commit").exists():
        return packed.read_text().strip()
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except OSError:
        return "unknown"


# Runs in a child process: the process that runs the pieces must have no context, because a GPU may give only one
# process a context at a time, and must survive any failure here.
ASK = """
import ctypes, json, platform, bascule
driver = bascule._bascule._driver_info()
library, mode = ctypes.CDLL(driver["path"]), ctypes.c_int()
device = bascule.current_device()
library.cuDeviceGetAttribute(ctypes.byref(mode), 20, 0)  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
facts = {"device": device.name, "arch": device.arch, "driver": driver["version"], "python": platform.python_version(),
         "bascule": bascule.__version__, "emulated": hasattr(library, "bascule_emulated_abi"),
         "for one process": mode.value == 3}
print(json.dumps(facts))
bascule.compile("__global__ void nothing() {}").nothing.ptx
print(json.dumps(bascule._bascule._nvrtc_info()))
"""


@functools.cache
def asked() -> list[dict[str, Any]]:
    """Facts of the device and of NVRTC; fewer if a question failed."""
    command = ["timeout", "--kill-after=5", "60", sys.executable, "-c", ASK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"tests/gpu: the device or the compiler could not be asked:\n{done.stderr[-1000:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@functools.cache
def facts() -> dict[str, Any]:
    device = {"device": "unknown", "driver": None, "python": platform.python_version(), "emulated": False}
    return {**device, **(asked()[:1] or [{}])[0], "commit": commit(), "libraries": versions()}


def for_cpp_tests() -> dict[str, str]:
    """Environment variables by which C++ programs find the same NVRTC and headers as this Python."""
    found = (asked()[1:] or [{"path": "", "include_paths": []}])[0]
    libraries = [str(Path(found["path"]).parent), str(package()), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        "BASCULE_TEST_NVRTC": found["path"],
        "BASCULE_TEST_INCLUDE": os.pathsep.join(found["include_paths"]),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }


def summary_of(logs: Path) -> dict[str, Any]:
    names = sorted({path.name.partition(".")[0] for path in logs.glob("[!.]*.*")})
    pieces = {name: piece(name, logs) for name in names}
    totals = {
        "passed": sum(each.get("passed", 0) for each in pieces.values()),
        "failed": sum(map(number_failed, pieces.values())),
        "hung": sum(each.get("hung", 0) for each in pieces.values()),
        "skipped": sum(sum(each.get("skipped", {}).values()) for each in pieces.values()),
        "passed on the emulated device": sum(each.get("on the emulated device", 0) for each in pieces.values()),
        "pieces": len(pieces),
        "pieces that ended well": sum(each["exit"] == 0 for each in pieces.values()),
    }
    return {"date": datetime.date.today().isoformat(), **facts(), "totals": totals, "pieces": pieces}


def is_well(summary: dict[str, Any]) -> bool:
    """True if nothing that has ended failed."""
    return all(each["exit"] in (0, None, 5) and not number_failed(each) for each in summary["pieces"].values())


def line_of(name: str, logs: Path) -> str:
    found = piece(name, logs)
    text = f"{name}: exit {found['exit']}"
    if "passed" in found:
        text += f", {found['passed']} passed, {number_failed(found)} failed"
    if skipped := sum(found.get("skipped", {}).values()):
        text += f", {skipped} skipped"
    if hung := found.get("hung"):
        text += f", {hung} of them hung"
    if emulated := found.get("on the emulated device"):
        text += f", {emulated} on the emulated device"
    return text


@functools.cache
def words_for_places() -> dict[str, str]:
    """The word that replaces each directory of this machine; directories within others come first."""
    words = {
        str(ROOT): ".",
        sysconfig.get_path("purelib"): "site-packages",
        sysconfig.get_path("platlib"): "site-packages",
        sys.executable: "python",
        tempfile.gettempdir(): "TMP",
        os.path.expanduser("~"): "~",
    }
    return {path: words[path] for path in sorted(words, key=len, reverse=True) if len(Path(path).parts) > 1}


def without_places(text: str) -> str:
    """The text, or JSON, with words instead of the directories of this machine."""
    words = words_for_places()
    places = "|".join(map(re.escape, words))
    return re.sub(rf"(?:(?<![\w.-])|(?<=\\n)|(?<=-I))({places})(?![\w-])", lambda found: words[found[1]], text)


def readable(value: Any, indent: str = "") -> str:
    """JSON with one line for each value that fits into one."""
    text = json.dumps(value)
    if not value or not isinstance(value, (dict, list)) or len(indent) + len(text) <= 140:
        return text
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(name)}: {readable(each, inner)}" for name, each in value.items()]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + readable(each, inner) for each in value) + f"\n{indent}]"


def with_short_lines(text: str) -> str:
    lines = text.splitlines()
    return "".join(f"{line if len(line) <= MOST_LINE else line[:MOST_LINE] + ' ...'}\n" for line in lines)


def write(logs: Path, results: Path) -> Path:
    """Writes the results, and keeps earlier pieces of the same commit.

    Replaces results.json atomically, so that a killed run does not damage it.
    """
    summary = summary_of(logs)
    name = re.sub(r"[^a-z0-9]+", "-", summary["device"].lower()).strip("-")
    target = results / f"{summary['date']}-{name}"
    target.mkdir(parents=True, exist_ok=True)
    file = target / "results.json"
    if file.exists():
        before = json.loads(file.read_text(encoding="utf-8"))
        if all(before.get(key) == summary[key] for key in ("commit", "driver", "python")):
            summary["pieces"] = before["pieces"] | summary["pieces"]
    replace(file, without_places(readable(summary)) + "\n")
    for log in [*logs.glob("bench-*.log"), *(logs / f"{name}.log" for name in TEXTS)]:
        if log.exists():
            text = without_places(log.read_text(encoding="utf-8", errors="replace"))
            (target / f"{log.stem}.txt").write_text(with_short_lines(text), encoding="utf-8")
    for measured in [*logs.glob("bench-*.json"), *(logs / f"{name}.json" for name in RECORDED)]:
        if not measured.exists():
            continue
        (target / measured.name).write_text(without_places(measured.read_text(encoding="utf-8")), encoding="utf-8")
    return target


def bring_home(logs: Path, results: Path, home: Path) -> None:
    """Copies the most important files to `home`, and packs everything there; the archive is replaced atomically."""
    target = home / results.name
    target.mkdir(parents=True, exist_ok=True)
    for name in LOOKED_AT_FIRST:
        if (results / name).exists():
            shutil.copyfile(results / name, target / name)
    temporary = target / "logs.tar.gz.part"
    with tarfile.open(temporary, "w:gz", compresslevel=6) as archive, tempfile.TemporaryDirectory() as directory:
        archive.add(results, "results")
        for file in sorted(logs.iterdir()):
            if file.is_file():
                shortened = Path(directory, file.name)
                shortened.write_bytes(shortened_log(file.read_bytes()))
                archive.add(shortened, f"logs/{file.name}")
    temporary.replace(target / "logs.tar.gz")


def shortened_log(data: bytes) -> bytes:
    if len(data) <= MOST_LOG:
        return data
    head, tail = MOST_LOG // 4, MOST_LOG - MOST_LOG // 4
    return data[:head] + b"\n... shortened ...\n" + data[-tail:]


# Paths on the machine of the run, whose directories are unknown on this machine.
PLACES_THERE = re.compile(r"(?:/[\w.+-]+)+/(?:(site-packages)|pack)(?=/)")
NAME_OF_ITS_KERNEL = re.compile(r"(Linux-\d+\.\d+\.\d+)-[\w.-]+?(?=-(?:x86_64|aarch64))")


def keep(home: Path, results: Path, name: str = "") -> Path:
    """Copies downloaded results to the committed results. Replaces nothing there."""
    target = results / home.name
    target.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    with tarfile.open(home / "logs.tar.gz") as archive:
        for member in archive.getmembers():
            folder, _, file = member.name.partition("/")
            if not member.isfile() or not (folder == "results" or (folder == "logs" and file.endswith(".log"))):
                continue
            text = (archive.extractfile(member) or sys.exit(f"{member.name} cannot be read")).read().decode()
            stem = Path(file).stem
            if folder == "results":
                texts[file] = text
            elif stem in TEXTS or stem.startswith("bench-"):
                texts.setdefault(f"{stem}.txt", text)
    for file, text in texts.items():
        to = target / (f"{Path(file).stem}-{name}{Path(file).suffix}" if name else file)
        text = NAME_OF_ITS_KERNEL.sub(r"\1", PLACES_THERE.sub(lambda found: found[1] or ".", text))
        text = readable(json.loads(text)) + "\n" if to.suffix == ".json" else with_short_lines(text)
        if to.exists() and to.read_text(encoding="utf-8") != text:
            sys.exit(f"{to} is there already: give the run a name")
        to.write_text(text, encoding="utf-8")
    return target


def row_of(summary: dict[str, Any]) -> str:
    totals = summary["totals"]
    names = ("passed", "failed", "hung", "skipped", "passed on the emulated device")
    numbers = [f"{totals[name]:,}" if name in totals else "not counted" for name in names]
    return f"| {' | '.join([summary['date'], summary['device'], summary['commit'], *numbers])} |"


if __name__ == "__main__":
    if sys.argv[1] == "--keep":
        sys.exit(print(keep(Path(sys.argv[2]), RESULTS, *sys.argv[3:])))
    if sys.argv[1] == "--row":
        sys.exit(print(row_of(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))))
    written = write(Path(sys.argv[1]), Path(sys.argv[2]))
    if len(sys.argv) > 3:
        bring_home(Path(sys.argv[1]), written, Path(sys.argv[3]))
