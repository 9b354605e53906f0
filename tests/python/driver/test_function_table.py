"""Every member of the function table has the type of the version that it asks for, as declared by cuda.h.

If a function is requested by one version and called with the signature of another one, it corrupts the stack, but only
on a GPU. The headers are those of CUDA 12.0, the oldest that the table is for, of 13.0, and the newest wheel's.
"""

from __future__ import annotations

import re
import shutil
import site
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "runtime" / "driver" / "driver.hpp"
ROW = re.compile(r"FUNCTION\((cu\w+), (\d+), (?:plain|relaxed)\)")


def directories() -> Iterator[Path]:
    """Directories of CUDA headers: the wheels, those that tests/nvrtc_versions.py has installed, and the toolkit."""
    for packages in site.getsitepackages():
        yield from Path(packages).glob("nvidia/*/include")
    yield from (ROOT / "build" / "nvrtc").glob("*/nvidia/*/include")
    if compiler := shutil.which("nvcc"):
        yield Path(compiler).resolve().parent.parent / "include"
    yield Path("/usr/local/cuda/include")


def version_of(include: Path) -> int:
    """Returns 12000 for CUDA 12.0; 0 unless both cuda.h and cudaTypedefs.h are there."""
    header = include / "cuda.h"
    text = header.read_text() if (include / "cudaTypedefs.h").is_file() and header.is_file() else ""
    found = re.search(r"#define CUDA_VERSION (\d+)", text)
    return int(found[1]) if found else 0


def headers_of(wanted: str) -> Path:
    known = {version_of(include): include for include in directories()}
    if wanted == "newest":
        return known[max(known)]
    number = 1000 * int(wanted.split(".")[0]) + 10 * int(wanted.split(".")[1])
    if number not in known:
        pytest.skip(f"no headers of CUDA {wanted} are here: neither a toolkit's nor those of tests/nvrtc_versions.py")
    return known[number]


def symbols(include: Path, rows: list[tuple[str, str]]) -> dict[str, str]:
    """The symbol of each row, by name: the versions of a name are `cuX`, `cuX_v2`, `cuX_v3`, in order."""
    typedefs = (include / "cudaTypedefs.h").read_text()
    found = {}
    for name, version in rows:
        versions = sorted({int(each) for each in re.findall(rf"\bPFN_{name}_v(\d+)\)", typedefs)})
        if int(version) not in versions:
            continue  # from newer headers: the table leaves such rows out
        place = versions.index(int(version))
        found[name] = name if place == 0 else f"{name}_v{place + 1}"
    return found


def program(include: Path, header: str) -> str:
    text = TABLE.read_text()
    mandatory = ROW.findall(text[: text.index("newer drivers and headers")])
    optional = set(ROW.findall(text[text.index("newer drivers and headers") :]))
    assert len(mandatory) > 60
    assert optional
    assert all(int(version) <= 12000 for _, version in mandatory), "drivers of CUDA 12.0 have all of these"
    known = symbols(include, [*mandatory, *optional])
    assert known.keys() >= {name for name, _ in mandatory}
    here = {name for name, version in [*mandatory, *optional] if int(version) <= version_of(include)}
    lines = [
        "#define __CUDA_API_VERSION_INTERNAL  // cuda.h declares every version by its own name",
        f'#include "{header}"',
        "#include <type_traits>",
        "using bascule::CallMode, bascule::DriverFunction;",
        "template <class Member, class Type, bascule::FunctionName name> constexpr bool has_type =",
        "    std::is_same_v<Member, DriverFunction<Type, name, CallMode::plain>> ||",
        "    std::is_same_v<Member, DriverFunction<Type, name, CallMode::relaxed>>;",
    ]
    for name, symbol in known.items():
        if name not in here:
            continue
        lines.append(
            f"static_assert(has_type<decltype(bascule::DriverFunctions::{name}), "
            f'decltype(&::{symbol}), "{name}">, "{name} is not {symbol}");'
        )
    assert len(lines) == 7 + len(here)
    return "\n".join(lines) + "\n"


def compile_(text: str, include: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    source = directory / "table.cpp"
    source.write_text(text)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-isystem", include, source]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["12.0", "13.0", "newest"])
def test_every_member_has_the_type_of_the_version_that_it_asks_for(version: str, tmp_path: Path) -> None:
    include = headers_of(version)
    ended = compile_(program(include, "runtime/driver/driver.hpp"), include, tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_a_member_of_another_versions_type_does_not_compile(tmp_path: Path) -> None:
    include = headers_of("newest")
    newest_of_each = TABLE.read_text().replace(
        "DriverFunction<PFN_##name##_v##version, #name, ", "DriverFunction<PFN_##name, #name, "
    )
    assert newest_of_each != TABLE.read_text()
    (tmp_path / "table.hpp").write_text(newest_of_each)
    ended = compile_(program(include, str(tmp_path / "table.hpp")), include, tmp_path)
    assert ended.returncode != 0
    assert "cuStreamGetCaptureInfo is not cuStreamGetCaptureInfo_v2" in ended.stderr
