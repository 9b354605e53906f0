"""The steps of the sample's Dockerfile, run in a directory instead of an image: its program compiles nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from .catalogue import SAMPLES

ROOT = SAMPLES.parent
DOCKERFILE = SAMPLES / "container" / "Dockerfile"
INSTALLATION = (ROOT / "python" / "docs" / "installation.md").read_text()
INSTRUCTIONS = re.findall(r"^([A-Z]+) (.+)$", DOCKERFILE.read_text(), re.MULTILINE)


def values_of(instruction: str) -> list[str]:
    return [value for name, value in INSTRUCTIONS if name == instruction]


def test_the_file_has_known_instructions_only():
    lines = [line for line in DOCKERFILE.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(INSTRUCTIONS) < 20
    assert {name for name, _ in INSTRUCTIONS} <= {"FROM", "RUN", "COPY", "ARG", "ENV", "WORKDIR", "USER", "CMD"}
    assert all(source.startswith("python:") for source in values_of("FROM"))


def test_the_wheel_is_built_as_the_page_about_installation_says():
    packages, build, install, _ = values_of("RUN")
    named = re.search(r"apt-get install (.+)", INSTALLATION)[1].split()
    of_python = {"python3-dev", "python3-venv"}  # the image of Python has both
    assert packages.split("--no-install-recommends ")[1].split() == [each for each in named if each not in of_python]
    option = re.search(r"pip wheel \. (-C \S+)`", INSTALLATION)[1]
    assert build == f"pip wheel --no-deps -w /wheels {option} /bascule"
    assert install == "pip install --no-cache-dir /wheels/*.whl"


def test_the_program_of_the_image_compiles_nothing(tmp_path: Path):
    (_, architecture) = values_of("ARG")[0].split("=")

    def inside(text: str) -> str:
        return text.replace("/opt/", f"{tmp_path}/").replace("$ARCH", architecture)

    (variables,) = values_of("ENV")
    image = os.environ | dict(each.split("=") for each in inside(variables).split())
    image |= {"PATH": f"{Path(sys.executable).parent}:{image['PATH']}", "BASCULE_DEVICE": "emulated"}
    # Modules of the tests stay visible, which is how they find the package under test.
    image |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    source, _ = values_of("COPY")[-1].split()
    shutil.copy(ROOT / source, tmp_path)

    def run(command: str, **more: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=image | more, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    precompile = inside(values_of("RUN")[-1]).replace("bascule", "python -m bascule", 1)
    assert "1 compiled" in run(precompile)
    for path in (tmp_path / "kernels", *(tmp_path / "kernels").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o555 if path.is_dir() else 0o444)
    words = re.findall(r'"([^"]+)"', values_of("CMD")[0])
    printed = run(" ".join(words), BASCULE_EMULATED_ARCH=architecture.removeprefix("sm_"))
    assert printed == "ok    on Bascule emulated device\ncompiled 0 times\n"


def test_the_page_shows_the_commands_of_the_file():
    commands = re.findall(r"^#     (.+)$", DOCKERFILE.read_text(), re.MULTILINE)
    page = (ROOT / "python" / "docs" / "clusters.md").read_text()
    assert len(commands) == 2
    assert [command for command in commands if f"$ {command}\n" not in page] == []
