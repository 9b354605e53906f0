"""Every pinned version can be installed with the oldest supported Python: its metadata says so."""

import importlib.metadata
import importlib.util
import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("check_pins", ROOT / "tests" / "check_pins.py")
check_pins = importlib.util.module_from_spec(specification)
specification.loader.exec_module(check_pins)


def pins() -> list[tuple[str, str]]:
    """(name, version) of the samples' and the tests' requirements."""
    files = [ROOT / each / "requirements.txt" for each in ("samples", "tests")]
    return [pin for file in files for pin in re.findall(r"^([\w.-]+)==(\S+)$", file.read_text(), re.MULTILINE)]


def refuses(requires_python: str | None, version: str) -> bool:
    return requires_python is not None and version not in SpecifierSet(requires_python)


@pytest.mark.parametrize(("name", "version"), pins(), ids=lambda value: value)
def test_a_pinned_version_takes_the_oldest_python(name, version):
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if metadata["Version"] != version:
        pytest.skip(f"{name} {metadata['Version']} is installed")
    wanted = metadata.get("Requires-Python")
    assert not refuses(wanted, check_pins.OLDEST), f"{name} {version} wants Python {wanted}: pin an older version"


def test_a_version_for_newer_pythons_is_noticed():
    assert refuses(">=3.11.5", check_pins.OLDEST)  # soupsieve 4.1.2, for example
    assert not refuses(">=3.9,!=3.9.0", check_pins.OLDEST)
    assert not refuses(None, check_pins.OLDEST)
