"""Reads the reports of ctest and pytest: no test may be missing, and none may be skipped without saying why.

    python tests/check_results.py BUILD_DIRECTORY [--cpp-only]

BUILD_DIRECTORY holds ctest.xml and, unless --cpp-only, pytest.xml. Prints what is wrong, and exits with 1.
"""

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


def missing_cpp_tests(report: Path) -> Iterator[str]:
    cases = {case.get("name"): case for case in ElementTree.parse(report).iter("testcase")}
    for label in LABELS:
        if label not in cases:
            yield f"ctest: no test is called {label}; is tests/{label}/CMakeLists.txt still included?"
            continue
        output = "".join(cases[label].itertext())
        summary = DOCTEST_SUMMARY.search(output)
        if not summary or int(summary[1]) == 0:
            yield f"ctest: {label} ran no test case"
    if "install" not in cases:
        yield "ctest: the installation was not tried; is tests/install still included?"
    if not any(name.startswith("sample_") for name in cases):
        yield "ctest: no C++ sample was run"
    for name, case in cases.items():
        if case.get("status") in {"notrun", "disabled"} or case.find("skipped") is not None:
            yield f"ctest: {name} did not run"


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


def missing_python_tests(report: Path) -> Iterator[str]:
    ran = set()
    for case in ElementTree.parse(report).iter("testcase"):
        ran.update((case.get("classname") or "").split("."))
        if doubt := doubtful_skip(case):
            yield f"pytest: {case.get('classname')}.{case.get('name')} {doubt}"
    for file in sorted((ROOT / "tests" / "python").rglob("test_*.py")):
        if file.stem not in ran:
            yield f"pytest: nothing of {file.relative_to(ROOT)} ran"


def main() -> int:
    build = Path(sys.argv[1])
    findings = list(missing_cpp_tests(build / "ctest.xml"))
    if "--cpp-only" not in sys.argv:
        findings += missing_python_tests(build / "pytest.xml")
    print("\n".join(findings) if findings else f"{build.name}: every test ran, or says why not")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
