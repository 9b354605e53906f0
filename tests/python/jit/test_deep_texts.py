"""Texts that nest too deeply for a compiler on a thread's usual stack."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import bascule

N = 40_000
TEXTS = {
    "terms": (f"__global__ void k(int* p, int x) {{ *p = {'+'.join(['x'] * N)}; }}", 2 * N),
    "parentheses": (f"__global__ void k(int* p, int x) {{ *p = {'(' * N}x{')' * N}; }}", 2),
    "blocks": (f"__global__ void k(int* p, int x) {{ {'{' * N}*p = x;{'}' * N} }}", 2),
    "calls": (
        "__device__ int f(int a) { return a + 1; }\n"
        f"__global__ void k(int* p, int x) {{ *p = {'f(' * 5000}x{')' * 5000}; }}",
        5002,
    ),
}


@pytest.mark.parametrize("where", ["in the main thread", "in another thread"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_deep_text_compiles_and_runs(name, where):
    text, expected = TEXTS[name]
    text += f" // {where}"
    p = bascule.to_device(np.zeros(1, "i4"))

    def work():
        bascule.compile(text).k[1, 1](p, 2)

    if where == "in another thread":
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
    assert p.copy_to_host().tolist() == [expected]
