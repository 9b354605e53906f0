"""Installs the pack's packages that this Python lacks, without a network: tests/gpu/run.sh calls it.

    python tests/gpu/install.py WHEELS SITE

Always installs Bascule's own wheel; another one only if no version of it is installed; CUDA headers only with an NVRTC
of the same major version, because headers of another one do not fit.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

HEADERS = {"nvidia-cuda-cccl", "nvidia-cuda-runtime", "nvidia-cuda-crt"}


def name_of(wheel: Path) -> str:
    return re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()


def major_of(version: str) -> str:
    return version.split(".")[0]


def installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_wanted(wheel: Path) -> bool:
    name = name_of(wheel)
    if name == "bascule":
        return True
    if name in HEADERS:
        nvrtc = installed("nvidia-cuda-nvrtc")
        compiler = installed(f"{name}-cu12")
        fits = nvrtc is None or major_of(nvrtc) == "13"
        return installed(name) is None and compiler is None and fits
    return installed(name) is None


def main() -> int:
    wheels, site = Path(sys.argv[1]), Path(sys.argv[2])
    stamp = site / "installed-from-the-pack"
    wanted = sorted(wheel for wheel in wheels.glob("*.whl") if is_wanted(wheel))
    state = "\n".join(f"{wheel.name} {wheel.stat().st_mtime_ns}" for wheel in sorted(wheels.glob("*.whl")))
    if stamp.exists() and stamp.read_text() == state:
        return 0
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    done = subprocess.run([*command, "--upgrade", "--target", str(site), *map(str, wanted)], check=False)
    if done.returncode != 0:
        print("tests/gpu/install.py: pip could not install the wheels; its message is above", file=sys.stderr)
        return 1
    stamp.write_text(state)
    print(f"installed in {site}: {', '.join(name_of(wheel) for wheel in wanted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
