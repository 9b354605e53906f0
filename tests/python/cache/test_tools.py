"""The disk cache is listed, verified, bounded, cleared, exported and imported, from Python and on the command line."""

import gzip
import hmac
import io
import json
import os
import pickle
import subprocess
import tarfile
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from child_process import run_python
from processes import TEXT, entries, run

import bascule

KEY = bytes(range(32))
HOUR = 3600
TEXTS = [TEXT.replace("VALUE", str(value)) for value in (3, 4, 5)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def python(directory: Path, program: str, *arguments: object, limit: str | None = None) -> subprocess.CompletedProcess:
    """Runs a program that has `bascule`, `sys` and the function `origin_of(text)`, in a process with this cache."""
    beginning = "import sys, bascule\ndef origin_of(text): return bascule.compile(text).fill.origin\n"
    settings = {} if limit is None else {"BASCULE_CACHE_LIMIT": limit}
    return run_python("-c", beginning + program, *arguments, BASCULE_CACHE_DIR=str(directory), **settings)


def printed(directory: Path, program: str, *arguments: object, limit: str | None = None) -> str:
    done = python(directory, program, *arguments, limit=limit)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def command(directory: Path | str, *arguments: object) -> subprocess.CompletedProcess:
    return run_python("-m", "bascule", "cache", *arguments, BASCULE_CACHE_DIR=str(directory))


def make_old(path: Path, hours: float) -> None:
    then = time.time() - hours * HOUR
    os.utime(path, (then, then))


# --- the bound ---


def _entry_of(directory: Path, value: int) -> Path:
    """The entry whose source multiplies by `value`."""
    (entry,) = (path for path in entries(directory) if f"= {value} * i".encode() in path.read_bytes())
    return entry


def test_the_limit_is_read_and_set_in_bytes(directory: Path) -> None:
    assert printed(directory, "print(bascule.cache.limit_bytes)") == str(2**30)
    assert printed(directory, "print(bascule.cache.limit_bytes)", limit="2MB") == "2000000"
    assert printed(directory, "print(bascule.cache.limit_bytes)", limit="unlimited") == "None"
    run(directory, *TEXTS)
    program = "bascule.cache.limit_bytes = int(sys.argv[1]); print(bascule.cache.trim(), bascule.cache.limit_bytes)"
    size = max(path.stat().st_size for path in entries(directory))
    assert printed(directory, program, size) == f"2 {size}"
    assert len(entries(directory)) == 1
    assert printed(directory, "bascule.cache.limit_bytes = None; print(bascule.cache.trim())") == "0"


@pytest.mark.parametrize(("limit", "kind"), [("1GB", TypeError), (1.5, TypeError), (True, TypeError), (-1, ValueError)])
def test_a_limit_that_is_none_is_refused(limit: object, kind: type[Exception]) -> None:
    before = bascule.cache.limit_bytes
    with pytest.raises(kind, match=r"bascule\.cache\.limit_bytes") as caught:
        bascule.cache.limit_bytes = limit
    assert isinstance(caught.value, bascule.Error)
    assert bascule.cache.limit_bytes == before


# --- list, verify, clear, disabled ---


def test_the_list_has_sizes_times_and_kernels(directory: Path) -> None:
    run(directory, *TEXTS[:2], arch="sm_80")
    for hours, path in enumerate(entries(directory)):
        make_old(path, hours * 5)
    program = "import json; print(json.dumps([{**e._asdict(), 'last_used': e.last_used.timestamp()} "
    listed = json.loads(printed(directory, program + "for e in bascule.cache.list()]))"))
    assert [entry["name"] for entry in listed] == [path.name for path in entries(directory)]
    for entry, path in zip(listed, entries(directory), strict=True):
        assert entry["bytes"] == path.stat().st_size
        assert abs(entry["last_used"] - path.stat().st_mtime) < 1e-3
        assert (entry["kernels"], entry["arch"], entry["problem"]) == (["fill"], "sm_80", "")
        assert entry["nvrtc"].count(".") == 1


def test_clear_empties_memory_and_on_request_the_disk(directory: Path) -> None:
    run(directory, TEXTS[0])
    (directory / "notes.txt").write_text("not Bascule's")
    program = """
print(origin_of(sys.argv[1]))
bascule.cache.clear()
print(origin_of(sys.argv[1]))
bascule.cache.clear(disk=True)
print(origin_of(sys.argv[1]))
"""
    assert printed(directory, program, TEXTS[0]).split() == ["disk", "disk", "compiled"]
    assert (directory / "notes.txt").exists()


def test_a_directory_that_is_not_trusted_is_said_to_be(directory: Path) -> None:
    run(directory, TEXTS[0])
    directory.chmod(0o777)
    for call in ("list()", "verify()", "trim()", "clear(disk=True)"):
        refused = python(directory, f"bascule.cache.{call}")
        assert refused.returncode == 1
        assert f"bascule.CacheError: The cache in {directory} cannot be" in refused.stderr
        assert "others can write to it (chmod 700 would do)" in refused.stderr
    assert len(entries(directory)) == 1


def test_without_a_directory_there_is_nothing_to_list_and_nothing_to_clear() -> None:
    assert printed(Path(), "print(bascule.cache.list()); bascule.cache.clear(disk=True)") == "[]"
    assert json.loads(command("", "list", "--json").stdout)["entries"] == []


def test_while_disabled_everything_is_compiled_and_nothing_is_kept(directory: Path) -> None:
    program = """
text = sys.argv[1]
for _ in range(3):
    origin_of(text)
with bascule.cache.disabled():
    print(origin_of(text), origin_of(text), bascule.compile(text) is bascule.compile(text))
    with bascule.cache.disabled():
        pass
    print(origin_of(text), origin_of(text + " "))
print(origin_of(text), origin_of(text + " "))
try:
    with bascule.cache.disabled():
        raise KeyError
except KeyError:
    print(origin_of(text))
"""
    expected = ["compiled", "compiled", "False", "compiled", "compiled", "memory", "compiled", "memory"]
    assert printed(directory, program, TEXTS[0]).split() == expected
    assert len(entries(directory)) == 2


def test_a_kernel_that_was_compiled_while_disabled_runs() -> None:
    with bascule.cache.disabled():
        kernel = bascule.compile(TEXTS[0]).fill
    out = bascule.to_device(np.zeros(4, "f4"))
    kernel[1, 32](out, 4)
    assert out.copy_to_host().tolist() == [0, 3, 6, 9]


# --- archives ---


EXPORT = "print(bascule.cache.export(sys.argv[1], key=bytes(range(32))))"
IMPORT = "print(bascule.cache.import_(sys.argv[1], key=bytes(range(32))))"


@pytest.fixture
def archive(directory: Path, tmp_path: Path) -> Path:
    """An archive of three programs; a fourth entry is damaged and not included."""
    run(directory, *TEXTS, TEXT, defines={"VALUE": "6"})
    _entry_of(directory, 5).write_bytes(b"damaged")
    assert printed(directory, EXPORT, tmp_path / "archive") == "3"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "cache"]
    return tmp_path / "archive"


def test_an_archive_serves_another_directory(archive: Path, tmp_path: Path) -> None:
    assert printed(tmp_path / "other", IMPORT, archive) == "3"
    assert printed(tmp_path / "other", IMPORT, archive) == "0"
    served = run(tmp_path / "other", *TEXTS[:2], TEXT, defines={"VALUE": "6"})
    assert (served.compiled, served.from_disk, served.nvrtc_calls, served.warnings) == (0, 3, 0, [])


def test_another_key_or_a_changed_byte_is_refused_and_nothing_is_placed(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"

    def refusal(program: str = IMPORT) -> str:
        refused = python(other, program, archive)
        assert refused.returncode == 1
        assert not other.exists()
        return refused.stderr

    assert "exported with another key, or was changed" in refusal(IMPORT.replace("32", "33"))
    whole = archive.read_bytes()
    for at in (len(whole) - 1, len(whole) - 40, len(whole) // 2, 30):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert "exported with another key, or was changed" in refusal()
    for length in (len(whole) - 1, len(whole) // 2, 60):
        archive.write_bytes(whole[:length])
        assert "exported with another key, or was changed" in refusal()
    for content in (b"", whole[:20], b"another file" * 10):
        archive.write_bytes(content)
        assert f"{archive} is not an archive" in refusal()
    archive.unlink()
    assert "FileNotFoundError" in refusal()


def _signed(contents: bytes) -> bytes:
    signed = b"bascule cache archive 1\n" + contents
    return signed + hmac.digest(KEY, signed, "sha256")


def _tar(*members: tuple[tarfile.TarInfo, bytes], gzipped: bool = True) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz" if gzipped else "w") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _member(name: str = "entry", size: int = 0, **changes: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    for key, value in changes.items():
        setattr(member, key, value)
    return member


ODD_CONTENTS = {
    "nothing": b"",
    "text": b"not an archive",
    "no gzip": _tar((_member(size=4), b"text"), gzipped=False),
    "half a gzip": _tar((_member(size=4000), os.urandom(4000)))[:2000],
    "a gzip of nothing": gzip.compress(b""),
    "a gzip of text": gzip.compress(b"text" * 1000),
    "a gzip with a wrong sum": gzip.compress(os.urandom(2000))[:-8] + b"\0" * 8,
    "a gzip of half a header": gzip.compress(_tar((_member(size=4), b"text"), gzipped=False)[:200]),
    "a gzip of half a member": gzip.compress(_tar((_member(size=4000), bytes(4000)), gzipped=False)[:1000]),
    "a link to nowhere": _tar((_member(type=tarfile.SYMTYPE, linkname="nowhere"), b"")),
    "a hard link to itself": _tar((_member(type=tarfile.LNKTYPE, linkname="entry"), b"")),
    "two links in a ring": _tar(
        (_member("a", type=tarfile.LNKTYPE, linkname="b"), b""), (_member("b", type=tarfile.SYMTYPE, linkname="a"), b"")
    ),
    "a text": _tar((_member(size=4), b"text")),
    "an empty entry": _tar((_member(), b"")),
    "an unfinished pax header": _tar((_member(type=tarfile.XHDTYPE, size=9), b"27 path=x")),
    "a pax header of nonsense": _tar((_member(type=tarfile.XHDTYPE, size=5), b"hello"), (_member("b", size=1), b"b")),
}


@pytest.mark.parametrize("name", ODD_CONTENTS)
def test_odd_contents_with_the_right_signature_are_a_cache_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(_signed(ODD_CONTENTS[name]))
    with pytest.raises(bascule.CacheError, match="archive.* Nothing was imported"):
        bascule.cache.import_(tmp_path / "archive", key=KEY)


def test_an_archive_without_entries_and_with_folders_imports_nothing(tmp_path: Path) -> None:
    for contents in (_tar(), _tar((_member("folder", type=tarfile.DIRTYPE), b""))):
        (tmp_path / "archive").write_bytes(_signed(contents))
        assert bascule.cache.import_(tmp_path / "archive", key=KEY) == 0


def test_an_archive_with_one_entry_that_is_damaged_places_none(directory: Path, tmp_path: Path) -> None:
    """The archive is correctly signed: even the owner of the key may export damaged contents."""
    run(directory, *TEXTS[:2])
    program = """
from bascule import _bascule
whole = _bascule._cache_bytes
names = [entry.name for entry in bascule.cache.list()]
_bascule._cache_bytes = lambda name: whole(name)[:-1] if name == names[-1] else whole(name)
bascule.cache.export(sys.argv[1], key=bytes(range(32)))
"""
    printed(directory, program, tmp_path / "archive")
    refused = python(tmp_path / "other", IMPORT, tmp_path / "archive")
    assert "is damaged. Nothing was imported." in refused.stderr
    assert not (tmp_path / "other").exists()


def test_a_key_is_bytes_and_long_enough(tmp_path: Path) -> None:
    for call in (bascule.cache.export, bascule.cache.import_):
        with pytest.raises(TypeError, match="key must be bytes, got str"):
            call(tmp_path / "archive", key="secret")
        with pytest.raises(ValueError, match="key has 6 bytes, but must have at least 16"):
            call(tmp_path / "archive", key=b"secret")
    assert list(tmp_path.iterdir()) == []


def test_an_import_needs_a_cache_that_can_be_written(archive: Path, tmp_path: Path) -> None:
    off = run_python("-c", "import sys, bascule\n" + IMPORT, archive, BASCULE_CACHE_DIR="")
    assert "bascule.CacheError: There is no cache on disk to import into." in off.stderr
    file = tmp_path / "file"
    file.write_text("")
    refused = python(file, IMPORT, archive)
    assert f"The cache in {file} cannot be written: Not a directory. 0 programs" in refused.stderr


# --- the command line ---


def test_the_command_lists_verifies_and_clears(directory: Path) -> None:
    run(directory, *TEXTS, arch="sm_80")
    first, second, _ = entries(directory)
    make_old(first, 3)
    make_old(second, 72)
    listed = command(directory, "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    lines = listed.stdout.splitlines()
    assert [line.split()[2:] for line in lines[:3]] == [
        ["within", "the", "hour", "sm_80", "fill"],
        ["3", "hours", "ago", "sm_80", "fill"],
        ["3", "days", "ago", "sm_80", "fill"],
    ]
    assert lines[3].startswith("3 programs, ")
    assert lines[3].endswith(f" KiB, at most 1.0 GiB, in {directory}")
    report = json.loads(command(directory, "list", "--json").stdout)
    assert report["directory"] == str(directory)
    assert report["limit_bytes"] == 2**30
    assert report["bytes"] == sum(path.stat().st_size for path in entries(directory))
    assert [entry["kernels"] for entry in report["entries"]] == [["fill"]] * 3
    intact = command(directory, "verify")
    assert (intact.returncode, intact.stdout) == (0, "All programs are intact.\n")
    first.write_bytes(first.read_bytes() + b"x")
    damaged = command(directory, "verify")
    assert damaged.returncode == 1
    assert f"{first.name}: damaged" in damaged.stdout
    assert [entry["name"] for entry in json.loads(command(directory, "verify", "--json").stdout)["entries"]] == [
        first.name
    ]
    assert command(directory, "trim").stdout == "Removed 0 programs.\n"
    assert command(directory, "clear").stdout.startswith("Removed 3 programs, ")
    assert entries(directory) == []


def test_the_command_exports_and_imports_with_a_key_in_a_file(directory: Path, tmp_path: Path) -> None:
    run(directory, *TEXTS)
    key, archive = tmp_path / "key", tmp_path / "archive"
    key.write_bytes(KEY)
    assert command(directory, "export", archive, "--key-file", key).stdout == "Exported 3 programs.\n"
    assert command(tmp_path / "other", "import", archive, "--key-file", key).stdout == "Imported 3 programs.\n"
    key.write_bytes(KEY[::-1])
    refused = command(tmp_path / "third", "import", archive, "--key-file", key)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"error: {archive} was exported with another key")
    missing = command(directory, "export", archive, "--key-file", tmp_path / "missing")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: ")
    assert str(tmp_path / "missing") in missing.stderr


@pytest.mark.parametrize("module", ["cache", "config"])
def test_pickled_functions_may_use_the_module(module):
    names = {"bascule": bascule, "__name__": "__main__"}
    exec(f"def name(): return bascule.{module}.__name__", names)
    assert pickle.loads(cloudpickle.dumps(names["name"]))() == f"bascule.{module}"
    assert pickle.loads(cloudpickle.dumps(getattr(bascule, module))) is getattr(bascule, module)
