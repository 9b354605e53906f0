"""Makes a library's real arrays, compares what they export with the committed dicts, and runs kernels on them.

    python -m producers.live LIBRARY [CASE...]

Each library runs in a separate process, with its own environment variables and memory pools. Its last line is JSON:
{"missing": why} if the library has no device, else {"version": text, "device": text, "cases": {case: null or error}}.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import bascule
from producers.catalogue import DIRECTORY, Export, Exposing, Library, exports, read_library
from producers.elements import ELEMENTS, Programs
from producers.kernels import programs_for, read_through_kernels, same, values_of, write_through_a_kernel


def filled(array: Any, values: np.ndarray) -> Any:
    """Copies the values to `array`, whose memory the host can access."""
    array[...] = values
    return array


class Session:
    """One library, imported."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.names: dict[str, Any] = {"np": np, "filled": filled}
        exec(library.imports, self.names)

    def is_there(self) -> bool:
        return bool(eval(self.library.available, self.names))

    def problem(self, export: Export, programs: Programs) -> str | None:
        """Returns what is wrong with this case, if anything."""
        rng = np.random.default_rng(20261121)
        values = values_of(export, rng)
        names = self.names | {"values": values, "valid": rng.random(values.shape) < 0.5}
        exec(export.setup, names)
        with eval(export.within, names) if export.within else contextlib.nullcontext():
            if export.raises is not None:
                return self._problem_of_raising(export, eval(export.make, names))
            array = names["array"] = eval(export.make, names)
            exec(self.library.finish, names)
            differences = self._differences(export, array.__cuda_array_interface__, names)
            if differences or not export.goes_through_a_kernel:
                return differences
            view = export.host_view(values)
            return self._problem_of_kernels(export, array, view, programs, names)

    def _problem_of_raising(self, export: Export, array: Any) -> str | None:
        assert export.raises is not None
        try:
            interface = array.__cuda_array_interface__
        except Exception as error:
            expected = getattr(builtins, export.raises["error"])
            if isinstance(error, expected) and export.raises["says"] in str(error):
                return None
            return f"raised {error!r}, not {expected.__name__} with '{export.raises['says']}'"
        return f"exports {interface}, and was expected to raise {export.raises['error']}"

    def _differences(self, export: Export, interface: dict[str, Any], names: dict[str, Any]) -> str | None:
        """Compares the dict of the live object with the committed one key by key, types included."""
        assert export.interface is not None

        def place(placeholder: str) -> Any:
            text = self.library.pointer if placeholder == "<pointer>" else self.library.stream
            return eval(text, names)

        return "; ".join(differences(export.interface, interface, place)) or None

    def _problem_of_kernels(
        self, export: Export, array: Any, view: np.ndarray, programs: Programs, names: dict[str, Any]
    ) -> str | None:
        element = ELEMENTS[export.values["dtype"]]
        for got, expected in read_through_kernels(programs, element, view, array):
            if not same(got, expected):
                return f"a kernel read {got[:5]}, not {expected[:5]}"
        if array.__cuda_array_interface__["data"][1] or (view.size and 0 in view.strides):
            return None
        write_through_a_kernel(programs, element, view, array)
        got = np.ascontiguousarray(eval(self.library.host, names)).reshape(-1).view(element.dtype)
        expected = element.expected(view).reshape(-1)
        if not same(got, expected):
            return f"the library sees {got[:5]} after a kernel wrote {expected[:5]}"
        return None

    def problem_of_consuming(self, case: str, ours: bascule.DeviceArray, expected: np.ndarray) -> str | None:
        """Returns what is wrong with the library's view of an array of Bascule's; known refusals are allowed."""
        try:
            got = np.asarray(eval(self.library.consume, self.names | {"ours": ours}))
        except Exception as error:
            if case in self.library.refuses and self.library.refuses[case] in str(error):
                return None
            raise
        return None if np.array_equal(got, expected) else f"the library reads {got[:2]}, not {expected[:2]}"


OF_OURS = ["reads ours", "reads every second column of ours", "reads ours from a stream"]


def arrays_of_ours() -> dict[str, tuple[bascule.DeviceArray, np.ndarray]]:
    """Arrays of Bascule's that a library may be given, and their expected contents."""
    values = np.random.default_rng(20261121).integers(0, 40, (6, 4)).astype("f4")
    whole, late = bascule.to_device(values), bascule.to_device(np.zeros_like(values), stream=bascule.stream())
    columns = whole.__cuda_array_interface__ | {"shape": (6, 2), "strides": (16, 8)}
    late.copy_from_host(values)
    every_second = bascule.as_cuda_array(Exposing(columns, owner=whole))
    return dict(zip(OF_OURS, [(whole, values), (every_second, values[:, ::2]), (late, values)], strict=True))


def differences(committed: dict[str, Any], live: Any, place: Any, where: str = "") -> list[str]:
    if type(live) is not dict:
        return [f"{where or 'the interface'} is a {type(live).__name__}"]
    found = [f"{where}{key} is new: {live[key]!r}" for key in live.keys() - committed.keys()]
    for key, expected in committed.items():
        if key not in live:
            found.append(f"{where}{key} is missing")
        elif isinstance(expected, dict) and "<object>" in expected:
            found += differences_of_an_object(expected["<object>"], live[key], f"{where}{key}: ")
        else:
            found += difference(f"{where}{key}", expected, live[key], place)
    return found


def differences_of_an_object(committed: dict[str, Any], live: Any, where: str) -> list[str]:
    """Compares all but the address, which nothing else can confirm."""
    interface = live.__cuda_array_interface__
    return differences(committed, interface, lambda _: interface["data"][0], where)


def difference(where: str, expected: Any, live: Any, place: Any) -> list[str]:
    if expected == "<anything>":
        return []
    if isinstance(expected, str) and expected.startswith("<") and expected.endswith(">"):
        expected = place(expected)
    if isinstance(expected, list):
        form = list if where.endswith("descr") else tuple
        if type(live) is not form or len(live) != len(expected):
            return [f"{where} is {live!r}, not {expected!r} as a {form.__name__}"]
        return [
            text
            for index, pair in enumerate(zip(expected, live, strict=True))
            for text in difference(f"{where}[{index}]", *pair, place)
        ]
    if type(live) is not type(expected) or live != expected:
        return [f"{where} is {live!r} ({type(live).__name__}), not {expected!r}"]
    return []


def attempt(check: Callable[..., str | None], *args: Any) -> str | None:
    try:
        return check(*args)
    except Exception:
        return traceback.format_exc()


def main(name: str, cases: list[str]) -> dict[str, Any]:
    library = read_library(DIRECTORY / f"{name}.json")
    session = Session(library)
    try:
        there = session.is_there()
    except Exception as error:
        return {"missing": f"no CUDA device that {library.needs[0]} can use: {error}"}
    if not there:
        return {"missing": f"no CUDA device that {library.needs[0]} can use"}
    wanted = [export for export in library.exports if export.make and (not cases or export.case in cases)]
    # Programs for all exports, not only this library's: one text, which the tests of the dicts have already compiled.
    programs = programs_for([export for export in exports() if export.interface])
    outcomes = {export.case: attempt(session.problem, export, programs) for export in wanted}
    if library.consume:
        for case, (ours, expected) in arrays_of_ours().items():
            if not cases or case in cases:
                outcomes[case] = attempt(session.problem_of_consuming, case, ours, expected)
    version = getattr(importlib.import_module(library.needs[0]), "__version__", "unknown")
    return {"version": str(version), "device": str(bascule.current_device()), "cases": outcomes}


if __name__ == "__main__":
    report = main(sys.argv[1], sys.argv[2:])
    print(json.dumps(report), flush=True)
    os._exit(0)  # libraries that share a context disagree on which one destroys it
