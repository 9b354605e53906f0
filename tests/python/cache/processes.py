"""Programs that a test runs in separate processes, with a cache directory that it chooses."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TEXT = "__global__ void fill(float* x, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = VALUE * i; }"

# Compiles, launches and prints the results.
PROGRAM = r"""
import json, sys, warnings
import numpy as np
import bascule

request = json.loads(sys.argv[1])
options = bascule.CompileOptions(
    defines=request.get("defines", {}), include_paths=request.get("include_paths", []), arch=request.get("arch"))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values = []
    for text in request["texts"]:
        kernel = bascule.compile(text, options=options).fill
        out = bascule.to_device(np.full(64, -1, "f4"))
        kernel[1, 32](out, 64)
        values.append(out.copy_to_host().tolist())
stats = bascule.cache.stats()
print(json.dumps({
    "values": values,
    "origin": kernel.origin,
    "compiled": stats.compiled, "from_disk": stats.from_disk, "from_memory": stats.from_memory,
    "nvrtc_calls": stats.nvrtc_calls,
    "directory": bascule.cache.directory(),
    "warnings": [str(w.message) for w in caught if issubclass(w.category, bascule.CacheWarning)],
    "files": [w.filename for w in caught if issubclass(w.category, bascule.CacheWarning)],
}))
"""


@dataclass
class Outcome:
    """The printed results of a process."""

    values: list[list[float]]
    origin: str
    compiled: int
    from_disk: int
    from_memory: int
    nvrtc_calls: int
    directory: str
    warnings: list[str]
    files: list[str]

    @property
    def factor(self) -> float:
        """The VALUE that the kernel was compiled with; every element is checked."""
        (values,) = self.values[-1:]
        factor = values[1]
        assert values == [factor * i for i in range(64)]
        return factor


def entries(directory: Path) -> list[Path]:
    """The files of compiled programs in a cache directory, without the file with the time of the last sweep."""
    return sorted(directory.glob("*.[0-7]"))


def start(directory: Path | None, *texts: str, environment: dict[str, str | None] | None = None, **request):
    """Starts a process that compiles `texts` one after the other. `environment` adds variables; None removes one."""
    changed = dict(os.environ)
    if directory is not None:
        changed["BASCULE_CACHE_DIR"] = str(directory)
    for name, value in (environment or {}).items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    request["texts"] = texts or [TEXT]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(request)],
        env=changed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> Outcome:
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return Outcome(**json.loads(out))


def run(directory: Path | None, *texts: str, **request) -> Outcome:
    return finish(start(directory, *texts, **request))
