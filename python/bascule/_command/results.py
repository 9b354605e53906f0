"""Prints the arrays that `bascule run` passed to a kernel, and saves them to files."""

from pathlib import Path
from typing import Any

import numpy as np

from bascule._bascule import Kernel, _kernel_facts
from bascule._command.parser import UsageError
from bascule._new_file import replacing

Array = np.ndarray[Any, Any]

_SHOWN = 8  # first values


def output_files(requests: list[str], arrays: dict[str, Any]) -> dict[str, Path]:
    """Map parameter names to files, from NAME=FILE. Called before the launch. Raises UsageError."""
    files: dict[str, Path] = {}
    for request in requests:
        name, equals, file = request.partition("=")
        if not equals or not file:
            raise UsageError(f"--out {request}: write --out NAME=FILE.npy with the name of a parameter")
        if name not in arrays:
            known = ", ".join(arrays) or "none"
            raise UsageError(f"--out {request}: no array is passed for a parameter {name!r}; arrays: {known}")
        if name in files:
            raise UsageError(f"--out {request}: {name!r} is already written to {files[name]}")
        path = Path(file)
        if path.name and not path.suffix:
            path = path.with_suffix(".npy")
        if not path.parent.is_dir() or path.is_dir():
            raise UsageError(f"--out {request}: {path.parent if not path.is_dir() else path} is not a file's place")
        files[name] = path
    return files


def print_arrays(function: Kernel, passed: dict[str, list[Any]], files: dict[str, Path]) -> None:
    """Print the arrays that the kernel may write and those in `files`, and save the latter.

    `passed` maps a parameter to its host array from before the launch and its device array. An existing file is
    replaced when the new one is complete.
    """
    written = _kernel_facts(function)["written"]
    for name, (before, device) in passed.items():
        if name not in files and name not in written:
            continue
        after = device.copy_to_host()
        first, *more = _described(before, after)
        print(f"{name:<10} {first}")
        for line in more:
            print(f"{'':<10} {line}")
        if name in files:
            with replacing(files[name]) as file:
                np.save(file, after, allow_pickle=False)
            print(f"{'':<10} saved in {files[name]}")


def _described(before: Array, after: Array) -> list[str]:
    """Return lines about an array: dtype, shape, number of changed elements, minimum, maximum, first values."""
    facts = [f"{after.dtype} {after.shape}", _changed(before, after)]
    if after.size and after.dtype.kind in "biuf":
        numbers = after[~np.isnan(after)] if after.dtype.kind == "f" else after
        if lost := after.size - numbers.size:
            facts.append(f"{lost:,} NaN")
        if numbers.size:
            form = ".7g" if after.dtype.kind == "f" else ""
            facts.append(f"min {numbers.min():{form}}, max {numbers.max():{form}}")
    if not after.size:
        return [", ".join(facts)]
    first = np.array2string(after.ravel()[:_SHOWN], separator=" ", max_line_width=100, threshold=_SHOWN)
    more = " ..." if after.size > _SHOWN else ""
    return [", ".join(facts), first.strip("[]").strip() + more]


def _changed(before: Array, after: Array) -> str:
    """Count changed elements. Compares bytes, so that an unchanged NaN is equal and -0.0 differs from 0.0."""
    if not after.size:
        return "no elements"
    old, new = (array.ravel().view("u1").reshape(array.size, -1) for array in (before, after))
    count = int((old != new).any(axis=1).sum())
    if count == 0:
        return "unchanged"
    return f"{count:,} of {after.size:,} elements changed"
