"""A page with every display, as a browser shows it in a light and in a dark theme."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bascule
from bascule._display.document import ACCENT, PROBLEM, WARNING

SOURCE = r"""
// Multiplies every element by a factor.
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}

/* The sum of a block's elements, through shared memory. */
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) block_sum(const T* x, T* out) {
    __shared__ T partial[BLOCK];
    partial[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
    __syncthreads();
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

__global__ void blend(float* out, const float* a, const float* b, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0.5f * (a[i] + b[i]);
}
"""

COLOURS = (ACCENT, PROBLEM, WARNING)
THEMES = {"light": ("white", "#222"), "dark": ("#111", "#ddd")}


@bascule.kernel("__global__ void shift(float* p, float by, int n) { if (threadIdx.x < n) p[threadIdx.x] += by; }")
def shift(p, by, n):
    return n


def failed(action) -> bascule.Error:
    with pytest.raises(bascule.Error) as caught:
        action()
    return caught.value


def shown() -> dict[str, object]:
    """Returns one of everything that has a display, keyed by its heading."""
    module = bascule.compile(SOURCE)
    a, b = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.arange(12_000, dtype="f4").reshape(100, 120), stream=a)
    y, z = (bascule.to_device(np.ones(4096, "f4"), stream=stream) for stream in (a, b))
    fresh = bascule.compile(SOURCE + "// another text").scale
    module.scale[16, 256, a](y, 2, 4096)
    a.synchronize()
    module.block_sum.instantiate("float", 256)[16, 256, a](y, y)
    a.synchronize()
    masked = np.ma.masked_less(np.arange(9).reshape(3, 3), 4)
    return {
        "a kernel that was launched": module.scale,
        "a kernel that was not": fresh,
        "a template": module.block_sum,
        "its instance": module.block_sum.instantiate("float", 256),
        "a module": module,
        "a launch rule": shift,
        "a launcher": module.scale[(16, 4), 256],
        "a bound launch": module.scale[16, 256].bind(y, 2, n=4096),
        "an array": y,
        "a view": x[::2, ::-1].T,
        "a masked array": bascule.to_device(masked),
        "which streams wait": module.blend[1, 256].explain(bascule.zeros(4096, "f4"), y, z, 4096),
        "no stream waits": module.scale[1, 256].explain(y, 2, 4096),
        "statistics": bascule.cache.stats(),
        "programs on disk": bascule.cache.list(),
        "a compile error": failed(
            lambda: bascule.compile("__global__ void k(float* p) {\n    p[0] = missing<int>(1);\n}")
        ),
        "an argument error": failed(lambda: module.scale[1, 1](bascule.zeros(4, "f8"), 2, 4)),
    }


def page(theme: str, objects: dict[str, object]) -> str:
    background, colour = THEMES[theme]
    swatches = "".join(f"<div style='background:{each};height:20px'></div>" for each in COLOURS)
    parts = "".join(f"<h3>{title}</h3>{thing._repr_html_()}" for title, thing in objects.items())
    return (
        f"<!doctype html><meta charset='utf-8'><title>Bascule's displays</title>"
        f"<body style='background:{background};color:{colour};font-family:sans-serif;margin:20px'>"
        f"<div style='position:absolute;right:0;top:0;width:40px'>{swatches}</div>{parts}"
    )


def photograph(file: Path) -> Image.Image:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium")
    png = file.with_suffix(".png")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,5200"]
    profile = f"--user-data-dir={file.parent / 'profile'}"
    subprocess.run(
        [browser, *flags, profile, f"--screenshot={png}", file.as_uri()], check=True, capture_output=True, timeout=240
    )
    return Image.open(png).convert("RGB")


def luminance(colour) -> float:
    """The luminance of an sRGB colour, as the Web Content Accessibility Guidelines define it."""
    channels = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a, b) -> float:
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_a_browser_shows_the_page_in_both_themes(theme, tmp_path):
    file = tmp_path / f"{theme}.html"
    file.write_text(page(theme, shown()), encoding="utf-8")
    photo = photograph(file)
    for row, colour in enumerate(COLOURS):  # the guidelines require 4.5
        assert contrast(photo.getpixel((1090, 20 * row + 10)), photo.getpixel((0, 0))) >= 4.5, colour
    pixels = np.asarray(photo.convert("L")).astype(int)
    background = pixels[0, 0]
    drawn = np.abs(pixels - background) > 90  # pixels that differ from the background
    assert (background > 200) == (theme == "light")
    rows = drawn[:, 20:1080].any(axis=1)
    assert rows[:3000].mean() > 0.4  # lines of text over the whole page
    assert 0.005 < drawn.mean() < 0.5
