"""Finds NVIDIA's disassembler and turns a cubin into SASS."""

import os
import shutil
import subprocess
import tempfile

import bascule

_TOOLS = (("nvdisasm", ("--print-code",)), ("cuobjdump", ("--dump-sass",)))
_TIMEOUT = 300  # seconds


def find_disassembler() -> str | None:
    """Return the path of nvdisasm or cuobjdump, from PATH, a wheel or a toolkit."""
    for name, _ in _TOOLS:
        if path := shutil.which(name) or _installed(name):
            return path
    return None


def _installed(name: str) -> str | None:
    from cuda import pathfinder

    # Some of the supported versions of cuda-pathfinder do not have this function.
    find = getattr(pathfinder, "find_nvidia_binary_utility", lambda _: None)
    return find(name) or shutil.which(name, path="/usr/local/cuda/bin")


def disassemble(cubin: bytes) -> str:
    """Return the SASS of a cubin. Raises LibraryError if no disassembler is found or it fails."""
    tool = find_disassembler()
    if tool is None:
        raise bascule.LibraryError(
            "SASS needs nvdisasm or cuobjdump, and neither is on PATH, in the wheels or in a CUDA toolkit. "
            "Run: pip install nvidia-cuda-nvdisasm"
        )
    flags = next(flags for name, flags in _TOOLS if os.path.basename(tool).startswith(name))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(
                [tool, *flags, file.name], capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise bascule.LibraryError(f"the disassembler {tool} cannot be run: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise bascule.LibraryError(f"the disassembler {tool} failed with status {done.returncode}: {said[:2000]}")
    return done.stdout
