"""Heat spreads in a plate of copper and in one of steel: cuda::std::mdspan, two streams, and a graph launched often.

    python samples/heat.py [--out DIRECTORY]

Each plate has a stream of its own, so a GPU may compute both at once. Ten steps of both are captured once as a graph;
then each launch of the graph is ten steps. NumPy computes the same in float64. Writes both plates as a PNG.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from PIL import Image

import bascule

KERNEL = r"""
#include <cuda/std/mdspan>

template <class T>
using matrix = cuda::std::mdspan<T, cuda::std::dextents<int, 2>>;

// One explicit step of du/dt = diffusivity * (d2u/dx2 + d2u/dy2); the border keeps its temperature.
__global__ void step(matrix<const float> now, matrix<float> next, float diffusion) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= now.extent(0) || x >= now.extent(1)) return;
    const float here = now(y, x);
    const bool border = x == 0 || y == 0 || x == now.extent(1) - 1 || y == now.extent(0) - 1;
    next(y, x) = border ? here
                        : here + diffusion * (now(y, x - 1) + now(y, x + 1) + now(y - 1, x) + now(y + 1, x) - 4 * here);
}
"""
ROWS, COLUMNS, BLOCK = 144, 192, (32, 8)
GRID = (-(-COLUMNS // BLOCK[0]), -(-ROWS // BLOCK[1]))
STEPS_PER_LAUNCH, LAUNCHES = 10, 40
# Diffusivity in mm^2/s, times a step of 2 ms, over a cell of 1 mm^2: below 1/4 the steps are stable.
DIFFUSION = {"copper": 111 * 0.002, "steel": 12 * 0.002}


def plate():
    """Temperatures in degrees Celsius: a hot edge, a hot disc, and a cold bar."""
    temperature = np.full((ROWS, COLUMNS), 20, np.float32)
    y, x = np.ogrid[:ROWS, :COLUMNS]
    temperature[:, 0] = 100
    temperature[(y - 50) ** 2 + (x - 120) ** 2 < 400] = 90
    temperature[100:110, 40:150] = 0
    return temperature


def on_the_device():
    """The plates after all steps, by name."""
    kernel = bascule.compile(KERNEL).step
    plates = {name: [bascule.to_device(plate()) for _ in range(2)] for name in DIFFUSION}
    kernel.prepare(*plates["copper"], 0.1)  # compiled and loaded now, because a capture must not wait for that

    streams = {name: bascule.stream() for name in DIFFUSION}
    begin, ends = bascule.event(), [bascule.event() for _ in DIFFUSION]
    with bascule.Graph() as graph:
        begin.record()
        for (name, stream), end in zip(streams.items(), ends, strict=True):
            even, odd = plates[name]
            begin.wait(stream)  # the stream joins the capture: a branch of the graph begins
            for _ in range(STEPS_PER_LAUNCH // 2):
                kernel[GRID, BLOCK, stream](even, odd, DIFFUSION[name])
                kernel[GRID, BLOCK, stream](odd, even, DIFFUSION[name])
            end.record(stream)
        for end in ends:
            end.wait()  # the branches end
    print(f"a graph of {len(graph)} nodes, launched {LAUNCHES} times")
    for _ in range(LAUNCHES):
        graph.launch()
    return {name: pair[0].copy_to_host() for name, pair in plates.items()}


def by_numpy(diffusion):
    u = plate().astype(np.float64)
    for _ in range(STEPS_PER_LAUNCH * LAUNCHES):
        inner, around = u[1:-1, 1:-1], u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
        u[1:-1, 1:-1] = inner + diffusion * (around - 4 * inner)
    return u


def main():
    parser = argparse.ArgumentParser(description="Heat spreads in two plates.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the PNG (default: ./out)")
    options = parser.parse_args()
    print(f"device: {bascule.current_device()!r}")
    plates = on_the_device()
    options.out.mkdir(parents=True, exist_ok=True)
    png = options.out.resolve() / "heat.png"
    pictures = [colormaps["inferno"](each / 100, bytes=True)[..., :3] for each in (plate(), *plates.values())]
    Image.fromarray(np.hstack(pictures).repeat(2, axis=0).repeat(2, axis=1)).save(png)
    print(f"at the start, {' and '.join(plates)} afterwards: {png}")

    failed = []
    for name, got in plates.items():
        worst = np.abs(got - by_numpy(DIFFUSION[name])).max()
        right = worst <= 1e-3  # False for NaN
        print(f"{'ok' if right else 'WRONG':6}{name:7} differs from NumPy by at most {worst:.1e} °C (limit 0.001 °C)")
        if not right:
            failed.append(name)
    if failed:
        sys.exit(f"heat: {', '.join(failed)} differ from NumPy; see the lines marked WRONG")


if __name__ == "__main__":
    main()
