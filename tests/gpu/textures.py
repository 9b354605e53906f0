"""Texture results at difficult coordinates: recorded on a GPU, and compared with the emulated device.

    python tests/gpu/textures.py [--out FILE]        record
    python tests/gpu/textures.py --compare FILE...   sample the same here; exits with 1 if something differs

A record has everything that a comparison needs: texels, options, coordinates and results, as base64 of their bytes.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bascule

SOURCE = """
template <typename T> __global__ void row(cudaTextureObject_t t, const float* x, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<T>(t, x[i]);
}
template <typename T> __global__ void plane(cudaTextureObject_t t, const float* x, const float* y, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<T>(t, x[i], y[i]);
}
template <typename T>
__global__ void volume(cudaTextureObject_t t, const float* x, const float* y, const float* z, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<T>(t, x[i], y[i], z[i]);
}
template <typename T>
__global__ void cube(cudaTextureObject_t t, const float* x, const float* y, const float* z, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = texCubemap<T>(t, x[i], y[i], z[i]);
}
template <typename T> __global__ void gather(cudaTextureObject_t t, const float* x, const float* y, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2Dgather<T>(t, x[i], y[i], 0);
}
"""
MODES = [("clamp", False), ("border", False)]
MODES += [(address, True) for address in ("clamp", "border", "wrap", "mirror")]
FILTERS = ("point", "linear")
COUNT = 150
# The allowed error of adding two slices of a volume, whose exact rounding is unknown, relative to the largest texel.
SLICES_TOLERANCE = 2.0**-32


@dataclass
class Case:
    """One kernel on one texture. `at`: the coordinates; `made` and `options`: arguments for cuda_array and texture."""

    kernel: str
    texels: np.ndarray
    at: list[np.ndarray]
    made: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        return self.kernel != "volume" or self.options.get("filter") != "linear"


def run(module: bascule.Module, case: Case) -> np.ndarray:
    if case.made.get("pitched"):
        padded = np.zeros((case.texels.shape[0], 128), case.texels.dtype)
        padded[:, : case.texels.shape[1]] = case.texels
        source = bascule.to_device(padded)[:, : case.texels.shape[1]]
    else:
        source = bascule.cuda_array(case.texels, **case.made)
    texture = bascule.texture(source, **case.options)
    wide = case.made.get("channels") == 4 or case.kernel == "gather"
    integers = case.texels.dtype.kind != "f" and case.options.get("read") != "normalized"
    n = len(case.at[0])
    out = bascule.device_array((n, 4) if wide else n, case.texels.dtype if integers else "f4")
    cpp = "unsigned char" if integers else "float4" if wide else "float"
    kernel = module[case.kernel].instantiate(cpp)
    kernel[(n + 127) // 128, 128](texture, *[bascule.to_device(x) for x in case.at], out, n)
    return out.copy_to_host()


# --- the cases ---


def along(random: np.random.Generator, extent: int, normalized: bool) -> np.ndarray:
    """Coordinates inside and outside: random, at texel borders, in texel centres, and close to the borders."""
    quarter = COUNT // 4
    borders = random.integers(-extent, 2 * extent, COUNT - 2 * quarter).astype("f8")
    borders[quarter:] += 2.0 ** random.uniform(-24, -8, len(borders) - quarter) * random.choice([-1, 1])
    anywhere = random.uniform(-1.5 * extent, 2.5 * extent, quarter)
    middles = random.integers(-extent, 2 * extent, quarter) + 0.5
    made = np.concatenate([borders, anywhere, middles])
    random.shuffle(made)
    return (made / extent if normalized else made).astype("f4")


def texels_of(random: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    if dtype[0] == "f":
        return random.normal(size=count).astype(dtype)
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype=dtype, endpoint=True)


def cases() -> Iterator[tuple[str, Case]]:
    random = np.random.default_rng(5)

    def noise(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype("f4")

    rows = [noise(width) for width in (7, 9, 16, 1000)]
    planes, volume = noise(6, 9), noise(5, 6, 7)
    for address, normalized in MODES:
        asked = {"address": address, "normalized": normalized}
        name = f"{address}, {'normalized' if normalized else 'in texels'}"
        grids = [("row", texels, {}) for texels in rows]
        grids += [("plane", planes, {}), ("plane", planes, {"pitched": True}), ("volume", volume, {})]
        for kernel, texels, made in grids:
            at = [along(random, extent, normalized) for extent in texels.shape[::-1]]
            size = "x".join(map(str, texels.shape))
            for filter in FILTERS:
                label = f"{'pitched ' if made else ''}{kernel} of {size}, {name}, {filter}"
                yield label, Case(kernel, texels, at, made, {**asked, "filter": filter})
        special = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 2**24, 2**31, 2**32, -0.0, 1e-40], "f4")
        for filter in FILTERS:
            counted = np.arange(1, 9, dtype="f4")
            yield f"special, {name}, {filter}", Case("row", counted, [special], {}, {**asked, "filter": filter})
    for dtype, filter in itertools.product(("u1", "i1", "u2", "i2", "f2"), FILTERS):
        options = {"filter": filter, "read": "element" if dtype == "f2" else "normalized"}
        yield f"{dtype}, {filter}", Case("row", texels_of(random, dtype, 64), [along(random, 64, False)], {}, options)
    bytes_ = texels_of(random, "u1", 16)
    yield "integers", Case("row", bytes_, [along(random, 16, False)])
    directions = [noise(COUNT) for _ in range(3)]
    for filter in FILTERS:
        yield f"cube, {filter}", Case("cube", noise(6, 8, 8), directions, {"cube": True}, {"filter": filter})
    for address in ("clamp", "border"):
        at = [along(random, extent, False) for extent in (9, 6)]
        yield f"gather, {address}", Case("gather", planes, at, {"gather": True}, {"address": address})
    colours = np.arange(256, dtype="u1").repeat(4).reshape(256, 4)
    middles = np.arange(256, dtype="f4") + 0.5
    yield "srgb", Case("row", colours, [middles], {"channels": 4}, {"read": "normalized", "srgb": True})


# --- records ---


def encoded(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": array.shape, "data": data}


def decoded(stored: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(stored["data"]), stored["dtype"]).reshape(stored["shape"])


def as_json(results: dict[str, tuple[Case, np.ndarray]]) -> str:
    """JSON with one line for each array and case; an array that several cases share is written once."""
    arrays: dict[str, int] = {}

    def number(array: np.ndarray) -> int:
        return arrays.setdefault(json.dumps(encoded(array)), len(arrays))

    rows = [
        json.dumps(name)
        + ": "
        + json.dumps(
            {
                "kernel": case.kernel,
                "made": case.made,
                "options": case.options,
                "texels": number(case.texels),
                "at": [number(x) for x in case.at],
                "result": number(result),
            }
        )
        for name, (case, result) in results.items()
    ]
    device = json.dumps(bascule.current_device().name)
    driver = bascule._bascule._driver_info()["version"]
    return (
        f'{{\n"device": {device},\n"driver": {driver},\n"cases": {{\n'
        + ",\n".join(rows)
        + '\n},\n"arrays": [\n'
        + ",\n".join(arrays)
        + "\n]\n}\n"
    )


def from_json(text: str) -> dict[str, tuple[Case, np.ndarray]]:
    record = json.loads(text)
    arrays = [decoded(stored) for stored in record["arrays"]]
    return {
        name: (
            Case(row["kernel"], arrays[row["texels"]], [arrays[n] for n in row["at"]], row["made"], row["options"]),
            arrays[row["result"]],
        )
        for name, row in record["cases"].items()
    }


def differences(case: Case, recorded: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The indices where two results of a case differ."""
    same = (recorded == here) | ((recorded != recorded) & (here != here))
    if not case.exact:
        same |= np.abs(recorded.astype("f8") - here) <= SLICES_TOLERANCE * np.abs(case.texels).max()
    return np.nonzero(~same.reshape(len(same), -1).all(axis=1))[0]


def compare(text: str) -> list[str]:
    """Returns a line for each case in which the current device differs from the record."""
    module = bascule.compile(SOURCE)
    complaints = []
    for name, (case, recorded) in from_json(text).items():
        here = run(module, case)
        wrong = differences(case, recorded, here)
        if len(wrong):
            first = wrong[0]
            at = ", ".join(str(x[first]) for x in case.at)
            complaints.append(
                f"{name}: {len(wrong)} of {len(here)} samples differ; at {at}: recorded {recorded[first]}, "
                f"here {here[first]}"
            )
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Records what textures give at coordinates that are hard to get right."
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+")
    options = parser.parse_args()
    if options.compare:
        complaints = [line for file in options.compare for line in compare(file.read_text())]
        print("\n".join(complaints) or "no sample differs")
        return 1 if complaints else 0
    module = bascule.compile(SOURCE)
    text = as_json({name: (case, run(module, case)) for name, case in cases()})
    if options.out:
        options.out.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
