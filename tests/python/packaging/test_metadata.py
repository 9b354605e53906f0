"""The package's metadata, and the contents of its source archive."""

import re
import sys
import tarfile
import tomllib

import pytest
from installing import ROOT, copy_of_clone, run, without_toolkit
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory):
    directory = tmp_path_factory.mktemp("source")
    copy_of_clone(directory / "clone")
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check"]
    run(*command, "--outdir", directory, directory / "clone", cwd=directory, env=without_toolkit())
    (archive,) = directory.glob("bascule-*.tar.gz")
    return archive


def test_the_source_archive_has_what_a_build_and_the_tests_need(source_archive):
    with tarfile.open(source_archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = set(filter(None, run("git", "ls-files", "-z", cwd=ROOT).split("\0")))
    missing = {name for name in tracked if (ROOT / name).is_file() and not name.startswith(".ci/")} - names
    assert not missing
    assert names - tracked - {"PKG-INFO"} - {str(path) for path in directories(tracked)} == set()


def directories(names):
    return {parent for name in names for parent in __import__("pathlib").Path(name).parents} | {""}


def test_the_metadata_has_the_readme_the_licence_and_the_version(source_archive):
    with tarfile.open(source_archive) as archive:
        (member,) = (each for each in archive.getmembers() if each.name.endswith("/PKG-INFO"))
        text = archive.extractfile(member).read().decode()
    version = re.search(r"project\(bascule VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f"\nVersion: {version}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert (ROOT / "README.md").read_text().splitlines()[-1] in text
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("extra", ["cu12", "notebook", "all"])
def test_extras_name_packages_that_pip_understands(extra):
    wanted = [Requirement(each) for each in PROJECT["optional-dependencies"][extra]]
    assert wanted
    for each in wanted:
        assert each.name == "bascule" or each.specifier or extra == "all", f"{each} has no lower bound"


def test_all_is_every_extra_for_users():
    extras = PROJECT["optional-dependencies"]
    (reference,) = map(Requirement, extras["all"])
    # `cu12` is for drivers of CUDA 12, and `docs` is for those who change Bascule.
    assert reference.name == "bascule"
    assert reference.extras == set(extras) - {"all", "cu12", "docs"}
