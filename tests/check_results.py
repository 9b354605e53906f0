"""Reads the reports of ctest and pytest: no test may be missing, and none may be skipped without saying why.

    python tests/check_results.py BUILD_DIRECTORY                    ctest.xml, pytest.xml and pytest-slow.xml in it
    python tests/check_results.py BUILD_DIRECTORY --only LABEL...    these labels of ctest.xml alone
    python tests/check_results.py BUILD_DIRECTORY --slowest COUNT    prints the slowest tests with their seconds

Prints what is wrong, and exits with 1.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A label is a directory of tests (and `samples`); a program of doctest says how many cases it ran.
LABELS = ["interface", "jit", "runtime", "emulator"]
# Libraries that need a GPU or are too large to install everywhere. Numba and mpi4py are installed: their tests run.
MAY_BE_ABSENT = ["cudf", "cuml", "cupy", "jax", "pyarrow", "pycuda", "rmm", "torch", "warp"]
DOCTEST_SUMMARY = re.compile(r"test cases:\s*(\d+)\s*\|")


def cpp_cases(report: Path) -> dict[str, ElementTree.Element]:
    return {case.get("name", ""): case for case in ElementTree.parse(report).iter("testcase")}


def missing_labels(cases: dict[str, ElementTree.Element], labels: list[str]) -> Iterator[str]:
    for label in labels:
        if label not in cases:
            yield f"ctest: no test is called {label}; is tests/{label}/CMakeLists.txt still included?"
            continue
        output = "".join(cases[label].itertext())
        summary = DOCTEST_SUMMARY.search(output)
        if not summary or int(summary[1]) == 0:
            yield f"ctest: {label} ran no test case"
    for name, case in cases.items():
        if case.get("status") in {"notrun", "disabled"} or case.find("skipped") is not None:
            yield f"ctest: {name} did not run"


def missing_cpp_tests(cases: dict[str, ElementTree.Element]) -> Iterator[str]:
    yield from missing_labels(cases, LABELS)
    if "install" not in cases:
        yield "ctest: the installation was not tried; is tests/install still included?"
    if not any(name.startswith("sample_") for name in cases):
        yield "ctest: no C++ sample was run"


def doubtful_skip(case: ElementTree.Element) -> str | None:
    """What is wrong with leaving this test out, if it was left out."""
    skipped = case.find("skipped")
    if skipped is None:
        return None
    reason = (skipped.get("message") or "").strip()
    if reason in {"", "unconditional skip"}:
        return "is skipped without a reason"
    of_producers = "producers" in (case.get("classname") or "").split(".")
    if of_producers and reason not in {f"{library} is not installed" for library in MAY_BE_ABSENT}:
        return f"must run here, but: {reason}"
    return None


def python_cases(build: Path) -> Iterator[ElementTree.Element]:
    for report in ("pytest.xml", "pytest-slow.xml"):
        yield from ElementTree.parse(build / report).iter("testcase")


def missing_python_tests(build: Path) -> Iterator[str]:
    ran = set()
    for case in python_cases(build):
        ran.update((case.get("classname") or "").split("."))
        if doubt := doubtful_skip(case):
            yield f"pytest: {case.get('classname')}.{case.get('name')} {doubt}"
    for file in sorted((ROOT / "tests" / "python").rglob("test_*.py")):
        if file.stem not in ran:
            yield f"pytest: nothing of {file.relative_to(ROOT)} ran"


def slowest(build: Path, count: int) -> Iterator[str]:
    """A program of C++ tests counts as one test: its cases are not timed by ctest."""
    times = [(float(case.get("time") or 0), f"ctest {name}") for name, case in cpp_cases(build / "ctest.xml").items()]
    for case in python_cases(build):
        times.append((float(case.get("time") or 0), f"{case.get('classname')}.{case.get('name')}"))
    for seconds, name in sorted(times, reverse=True)[:count]:
        yield f"{seconds:7.1f} s  {name[:120]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Reads the reports of ctest and pytest.")
    parser.add_argument("build", type=Path, metavar="BUILD_DIRECTORY")
    parser.add_argument("--only", nargs="+", choices=LABELS, metavar="LABEL")
    parser.add_argument("--slowest", type=int, metavar="COUNT")
    options = parser.parse_args()
    if options.slowest is not None:
        print(*slowest(options.build, options.slowest), sep="\n")
        return 0
    cases = cpp_cases(options.build / "ctest.xml")
    if options.only:
        findings = list(missing_labels(cases, options.only))
    else:
        findings = [*missing_cpp_tests(cases), *missing_python_tests(options.build)]
    print("\n".join(findings) if findings else f"{options.build.name}: every test ran, or says why not")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
