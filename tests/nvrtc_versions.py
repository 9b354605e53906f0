"""Runs the corpus of kernels with the PTX of several NVRTC versions: all of it must run on the emulated device.

    python tests/nvrtc_versions.py               NVRTC 13.0, of a toolkit or else of wheels, on some files
    python tests/nvrtc_versions.py --long        12.0 to 13.0 of wheels, and the newest
    python tests/nvrtc_versions.py 12.4 newest   the versions named
    python tests/nvrtc_versions.py --jit         the JIT's own tests, C++ and Python, with 12.9, 13.0 and the newest

tests/nvrtc_variants.py also compiles with each in more ways and loads the PTX. `newest` is the NVRTC in .venv: the
usual run of the tests uses it for the corpus, so without arguments it only gets these variants. Wheels are installed
once, into build/nvrtc/VERSION. Ends with a table; exits with 1 if anything failed.
"""

import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "nvrtc"
NEWEST = "newest"

# nvcc's and crt's wheels have crt/mma.h, which mma.h includes. CUB of 12.4 includes <cstdio>, which NVRTC does not
# have: CCCL of 12.9 works with every 12.x.
WHEELS = {
    "12.0": [
        "nvidia-cuda-nvrtc-cu12==12.0.140",
        "nvidia-cuda-runtime-cu12==12.0.146",
        "nvidia-cuda-nvcc-cu12==12.0.140",
        "nvidia-cuda-cccl-cu12==12.9.27",
    ],
    "12.4": [
        "nvidia-cuda-nvrtc-cu12==12.4.127",
        "nvidia-cuda-runtime-cu12==12.4.127",
        "nvidia-cuda-nvcc-cu12==12.4.131",
        "nvidia-cuda-cccl-cu12==12.9.27",
    ],
    "12.8": [
        "nvidia-cuda-nvrtc-cu12==12.8.93",
        "nvidia-cuda-runtime-cu12==12.8.90",
        "nvidia-cuda-nvcc-cu12==12.8.93",
        "nvidia-cuda-cccl-cu12==12.9.27",
    ],
    "12.9": [
        "nvidia-cuda-nvrtc-cu12==12.9.86",
        "nvidia-cuda-runtime-cu12==12.9.79",
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "nvidia-cuda-cccl-cu12==12.9.27",
    ],
    "13.0": [
        "nvidia-cuda-nvrtc==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-cuda-cccl==13.0.85",
    ],
}
FIRST = "13.0"
# Files of the corpus whose PTX differs most among NVRTCs.
TELLING = ["async", "dynamic", "formats", "groups", "half", "library", "pipelines", "tensor", "warps", "words"]
JIT_VERSIONS = ["12.9", "13.0", NEWEST]
JIT_TESTS = ROOT / "build" / "dev" / "tests" / "jit" / "jit_tests"


@dataclass(frozen=True)
class Nvrtc:
    """One version: its library and the matching headers."""

    version: str
    library: Path
    include_paths: list[Path]

    def environment(self) -> dict[str, str]:
        """The environment of a process that uses this NVRTC, which may need LD_LIBRARY_PATH to find its builtins."""
        return {
            **own_environment(),
            "LD_LIBRARY_PATH": in_front(str(self.library.parent), "LD_LIBRARY_PATH"),
            "BASCULE_TEST_NVRTC": str(self.library),
            "BASCULE_TEST_INCLUDE": os.pathsep.join(str(path) for path in self.include_paths),
        }


@dataclass
class Result:
    version: str
    kernels: str = "-"
    passed: int = 0
    failed: int = 0
    xfailed: int = 0
    skipped: int = 0
    seconds: float = 0
    variants: str = ""
    complaint: str = ""

    @property
    def good(self) -> bool:
        return self.failed == 0 and self.variants == "loaded" and not self.complaint


def main() -> int:
    words = sys.argv[1:]
    if unknown := [word for word in words if word not in {*WHEELS, NEWEST, "--long", "--jit"}]:
        print(
            f"unknown: {' '.join(unknown)}; there are --long, --jit, {', '.join(WHEELS)} and {NEWEST}", file=sys.stderr
        )
        return 2
    if "--jit" in words:
        named = [word for word in words if not word.startswith("--")]
        return check_jit([available(version) for version in named or JIT_VERSIONS])
    results = []
    if words:
        chosen = [*WHEELS, NEWEST] if "--long" in words else words
        for version in chosen:
            results.append(check(newest() if version == NEWEST else of_wheels(version)))
    else:
        results.append(check(of_toolkit(FIRST) or of_wheels(FIRST), TELLING))
        results.append(check_loading_of(newest()))
    print_table(results)
    return 0 if all(result.good for result in results) else 1


def available(version: str) -> Nvrtc:
    if version == NEWEST:
        return newest()
    return of_toolkit(version) or of_wheels(version)


def check_jit(versions: list[Nvrtc]) -> int:
    """Runs jit_tests of build/dev, and the Python tests of the JIT and of structures, with each version; prints one
    line for each version and program."""
    lines = []
    for nvrtc in versions:
        say(f"the JIT's tests with NVRTC {nvrtc.version}, {nvrtc.library}")
        report = BUILD / f"pytest-jit-{nvrtc.version}.xml"
        BUILD.mkdir(parents=True, exist_ok=True)
        pytest = [sys.executable, "-m", "pytest", "-q", "-r", "fEs", f"--junitxml={report}"]
        pytest += ["tests/python/jit", "tests/python/dtypes"]
        for name, command in (("jit_tests", [str(JIT_TESTS)]), ("tests/python", pytest)):
            start = time.monotonic()
            status = subprocess.run(command, cwd=ROOT, env=nvrtc.environment()).returncode
            used = told_version(report) if command is pytest else nvrtc.version
            good = status == 0 and used == nvrtc.version
            verdict = "passed" if good else f"FAILED: exit status {status}, used NVRTC {used}"
            lines.append((good, f"{nvrtc.version:>6}  {name:<16}  {time.monotonic() - start:4.0f} s  {verdict}"))
    print(*(line for _, line in lines), sep="\n")
    return 0 if all(good for good, _ in lines) else 1


def told_version(report: Path) -> str | None:
    """The version of the compiling NVRTC, as reported by tests/python/jit/conftest.py."""
    if not report.is_file():
        return None
    told = {item.get("name"): item.get("value") for item in ElementTree.parse(report).iter("property")}
    return told.get("nvrtc")


def check(nvrtc: Nvrtc, files: list[str] | None = None) -> Result:
    say(f"the corpus with NVRTC {nvrtc.version}, {nvrtc.library}")
    result = Result(nvrtc.version)
    start = time.monotonic()
    run_corpus(nvrtc, result, files)
    load_variants(nvrtc, result)
    result.seconds = time.monotonic() - start
    return result


def check_loading_of(nvrtc: Nvrtc) -> Result:
    say(f"the newest is NVRTC {nvrtc.version}, {nvrtc.library}: the ordinary run of the tests uses it for the corpus")
    result = Result(nvrtc.version)
    start = time.monotonic()
    load_variants(nvrtc, result)
    result.seconds = time.monotonic() - start
    return result


def run_corpus(nvrtc: Nvrtc, result: Result, files: list[str] | None) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    report = BUILD / f"pytest-{nvrtc.version}.xml"
    report.unlink(missing_ok=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "-r", "fEs", f"--junitxml={report}"]
    if files:
        pytest += [f"tests/python/kernels/test_{each}.py" for each in files]
    else:  # test_endless.py is about the end of kernels, not about their code
        pytest += ["tests/python/kernels", "--ignore=tests/python/kernels/test_endless.py"]
    status = subprocess.run(pytest, cwd=ROOT, env=nvrtc.environment()).returncode
    if not report.is_file():
        result.complaint = f"pytest ended with {status} and left no report"
        return
    read_report(report, result)
    if status and not result.failed:
        result.complaint = f"pytest ended with {status}"


def read_report(report: Path, result: Result) -> None:
    """Reads counts, and the compiling NVRTC's version as reported by tests/python/kernels/conftest.py."""
    suite = ElementTree.parse(report)
    for case in suite.iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
        elif skipped is None:
            result.passed += 1
        elif skipped.get("type") == "pytest.xfail":
            result.xfailed += 1
        else:
            result.skipped += 1
    told = {item.get("name"): item.get("value", "") for item in suite.iter("property")}
    result.kernels = told.get("kernels", "-")
    if told.get("nvrtc") != result.version:
        result.complaint = f"the tests used NVRTC {told.get('nvrtc')}"
    elif not result.passed or result.kernels in {"-", "0"}:
        result.complaint = "nothing was compiled"


def load_variants(nvrtc: Nvrtc, result: Result) -> None:
    variants = ["tests/nvrtc_variants.py", str(nvrtc.library), *map(str, nvrtc.include_paths)]
    random_programs = ["tests/emulator/random_cpp.py", "--programs", "100"]
    result.variants = "loaded"
    for script in (variants, random_programs):
        # NVRTC 12.4 writes internal errors to stderr even if it succeeds, so stderr is shown only after a failure.
        ended = subprocess.run(
            [sys.executable, *script],
            cwd=ROOT,
            env=nvrtc.environment(),
            capture_output=True,
            text=True,
            errors="replace",
        )
        print(ended.stdout, flush=True)
        if ended.returncode:
            print(ended.stderr[-2000:], flush=True)
            result.variants = "failed"


def of_wheels(version: str) -> Nvrtc:
    """Returns the NVRTC of the wheels; installs them the first time, and again if a pin was changed."""
    target, pins = BUILD / version, WHEELS[version]
    stamp = target / "installed"
    if not stamp.is_file() or stamp.read_text().split() != pins:
        say(f"installing NVRTC {version} into {target.relative_to(ROOT)}")
        shutil.rmtree(target, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--only-binary", ":all:", "--target", str(target), *pins], check=True)
        stamp.write_text("\n".join(pins))
    library = next(library for library in target.glob("nvidia/*/lib/libnvrtc.so.*"))
    includes = sorted(target.glob("nvidia/*/include"))
    return Nvrtc(version, library, [*includes, *(path / "cccl" for path in includes if (path / "cccl").is_dir())])


def of_toolkit(version: str) -> Nvrtc | None:
    """The NVRTC of a toolkit of exactly this version that has the headers of the corpus; None if there is none."""
    compiler = shutil.which("nvcc")
    homes = [os.getenv("CUDA_HOME"), os.getenv("CUDA_PATH"), compiler and str(Path(compiler).resolve().parent.parent)]
    for home in filter(None, homes):
        root, library = Path(home), Path(home) / "lib64" / f"libnvrtc.so.{version.split('.')[0]}"
        headers = [root / "include", root / "include" / "cccl"]
        builtins = library.with_name(f"libnvrtc-builtins.so.{version}")
        needed = [library, builtins, *headers, headers[0] / "mma.h", headers[0] / "crt" / "mma.h"]
        if all(path.exists() for path in needed):
            return Nvrtc(version, library, headers)
    return None


def newest() -> Nvrtc:
    """The NVRTC of the ordinary tests, found by a child process so that this one loads no NVRTC."""
    question = (
        "from bascule import _bascule; found = _bascule._nvrtc_info();"
        "print(found['version'], found['path'], *found['include_paths'], sep='\\n')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", question], cwd=ROOT, env=own_environment(), check=True, capture_output=True, text=True
    )
    version, library, *include_paths = answer.stdout.splitlines()
    return Nvrtc(version, Path(library), [Path(path) for path in include_paths])


def print_table(results: list[Result]) -> None:
    columns = ["NVRTC", "kernels", "passed", "failed", "xfailed", "skipped", "variants", "seconds"]
    print("  ".join(f"{name:>8}" for name in columns))
    for r in results:
        row = [r.version, r.kernels, r.passed, r.failed, r.xfailed, r.skipped, r.variants, f"{r.seconds:.0f}"]
        print("  ".join(f"{value:>8}" for value in row) + (f"  {r.complaint}" if r.complaint else ""))


def own_environment() -> dict[str, str]:
    """An environment that selects the package of build/dev, whatever is installed, and the emulated device."""
    package = in_front(str(ROOT / "build" / "dev" / "python"), "PYTHONPATH")
    return {**os.environ, "PYTHONPATH": package, "BASCULE_DEVICE": "emulated"}


def in_front(path: str, variable: str) -> str:
    return os.pathsep.join(filter(None, [path, os.getenv(variable)]))


def say(words: str) -> None:
    print(f"=== {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
