"""Packs an installed tree as a wheel, the same bytes each time, and prints the wheel's name.

    python pack.py bascule|bascule-cpp TREE TAG DIRECTORY

TAG is for example cp311-cp311-manylinux_2_28_x86_64. The metadata of `bascule` is that of pyproject.toml. Times are
SOURCE_DATE_EPOCH. Each wheel has the licences of what is compiled into it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT_LICENCE = {"LICENSE": ROOT / "LICENSE"}
# libstdc++: what the older version lacks is linked in (older_libraries.py).
LINKED_IN = {
    "fmt": Path("/usr/share/doc/libfmt-dev/copyright"),
    "xxHash": Path("/usr/share/doc/libxxhash-dev/copyright"),
    "nlohmann_json": Path("/usr/share/doc/nlohmann-json3-dev/copyright"),
    "libstdc++": Path("/usr/share/doc/gcc-12-base/copyright"),
}
OF_CPP = """Metadata-Version: 2.4
Name: bascule-cpp
Version: {version}
Summary: The CMake package of Bascule: headers, libraries and the emulated device, for find_package(bascule)
License-Expression: Apache-2.0
"""


def licences(kind: str) -> dict[str, bytes]:
    """The texts in dist-info/licenses, by name."""
    sources = PROJECT_LICENCE | {f"linked/{name}.txt": path for name, path in LINKED_IN.items()}
    texts = {name: path.read_bytes() for name, path in sources.items()}
    if kind == "bascule":
        (found,) = (each for each in distribution("pybind11").files or () if each.name == "LICENSE")
        texts["linked/pybind11.txt"] = Path(str(found.locate())).read_bytes()
    return texts


def metadata(kind: str) -> dict[str, bytes]:
    """METADATA and, for `bascule`, entry_points.txt."""
    if kind == "bascule-cpp":
        version = re.search(r"project\(bascule VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
        assert version is not None
        return {"METADATA": OF_CPP.format(version=version[1]).encode()}
    from scikit_build_core.build import prepare_metadata_for_build_wheel

    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        made = Path(directory) / prepare_metadata_for_build_wheel(directory)
        return {name: (made / name).read_bytes() for name in ("METADATA", "entry_points.txt")}


def with_licences(text: bytes, names: list[str]) -> bytes:
    """METADATA with a License-File for each licence, in the place of those that it has."""
    head, _, body = text.decode().partition("\n\n")
    lines = [line for line in head.split("\n") if line and not line.startswith("License-File:")]
    lines += [f"License-File: {name}" for name in sorted(names)]
    return ("\n".join(lines) + "\n\n" + body).encode()


def pack(kind: str, tree: Path, tag: str, directory: Path) -> Path:
    texts, of_project = licences(kind), metadata(kind)
    of_project["METADATA"] = with_licences(of_project["METADATA"], list(texts))
    version = re.search(r"^Version: (.+)$", of_project["METADATA"].decode(), re.MULTILINE)
    assert version is not None
    stem = f"{kind.replace('-', '_')}-{version[1]}"
    of_project["WHEEL"] = f"Wheel-Version: 1.0\nGenerator: bascule\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    entries = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    entries |= {f"{stem}.dist-info/{name}": text for name, text in of_project.items()}
    entries |= {f"{stem}.dist-info/licenses/{name}": text for name, text in texts.items()}
    record = f"{stem}.dist-info/RECORD"
    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in sorted(entries.items())]
    entries[record] = "".join([*rows, f"{record},,\n"]).encode()
    moment = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    wheel = directory / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in sorted(entries, key=lambda each: (".dist-info/" in each, each)):  # the metadata last, as usual
            information = zipfile.ZipInfo(name, moment)
            information.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            archive.writestr(information, entries[name], zipfile.ZIP_DEFLATED, 9)
    return wheel


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in ("bascule", "bascule-cpp"):
        sys.exit(__doc__)
    print(pack(sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])))
