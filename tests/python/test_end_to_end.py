"""Kernels through all of Bascule, compared with NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from child_process import run_python
from conftest import SCALE

import bascule

SIZES = [0, 1, 31, 32, 33, 1_000_003]


@pytest.mark.parametrize("size", SIZES)
def test_scaling_agrees_with_numpy(size, rng, scale):
    host = rng.standard_normal(size).astype("f4")
    x = bascule.to_device(host)
    scale.forall(size)(x, 1.5, size)
    np.testing.assert_array_equal(x.copy_to_host(), host * np.float32(1.5))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("block", [1, 33, 256, 1024])
def test_odd_blocks_write_every_element_and_nothing_else(size, block, rng):
    if block == 1 and size > 1000:
        size = 1000  # only seven threads run
    kernel = bascule.compile(
        """
        __global__ void add(const int* a, const int* b, int* out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            for (; i < n; i += gridDim.x * blockDim.x) out[i] = a[i] + b[i];
        }"""
    ).add
    a = rng.integers(-(2**30), 2**30, size, dtype="i4")
    b = rng.integers(-(2**30), 2**30, size, dtype="i4")
    poison = np.full(size + 64, 0x5A5A5A5A, dtype="i4")
    out = bascule.to_device(poison)
    kernel[7, block](bascule.to_device(a), bascule.to_device(b), out, size)
    result = out.copy_to_host()
    np.testing.assert_array_equal(result[:size], a + b)
    np.testing.assert_array_equal(result[size:], poison[size:])


def test_a_decorated_launch_rule_decides_how_much_work_there_is(rng):
    @bascule.kernel(SCALE)
    def scale(p, f, n):
        return n

    host = rng.standard_normal(1000).astype("f4")
    x = bascule.to_device(host)
    scale(x, 2, 1000)
    scale(p=x, n=1000, f=0.5)
    scale[4, 256](x, 3, 1000)
    np.testing.assert_array_equal(x.copy_to_host(), host * np.float32(3))


def test_a_launch_rule_may_return_a_configuration(rng, emulated):
    @bascule.kernel(SCALE)
    def scale(p, f, n):
        return bascule.LaunchConfig(grid=10, block=100)

    x = bascule.to_device(np.ones(1000, "f4"))
    scale(x, 2, 1000)
    assert (x.copy_to_host() == 2).all()


def test_a_launch_rule_with_other_parameters_is_refused_at_the_first_call():
    @bascule.kernel(SCALE)
    def scale(p, factor, n):
        return n

    with pytest.raises(TypeError, match="'factor'.*the kernel names 'f'"):
        scale(None, 1, 0)


def test_keyword_arguments_go_to_the_parameters_they_name(scale):
    x = bascule.to_device(np.ones(10, "f4"))
    scale[1, 32](x, n=10, f=4)
    assert (x.copy_to_host() == 4).all()
    with pytest.raises(TypeError, match="no parameter 'g'"):
        scale[1, 32](x, n=10, g=4)
    with pytest.raises(TypeError, match="given twice"):
        scale[1, 32](x, 4, p=10)


def test_reprs_say_what_and_where(scale):
    place = "emulated:0" if bascule.current_device().emulated else "cuda:0"
    x = bascule.device_array((2, 3), "i8")
    scale.prepare()
    for thing, parts in (
        (x, ["DeviceArray", "(2, 3)", "int64", place]),
        (scale, ["Kernel", "void scale(float* p, float f, int n)", place]),
        (bascule.stream(), ["Stream", place]),
        (bascule.legacy_default_stream(), ["legacy default", place]),
        (bascule.event(), ["Event", place]),
        (scale[4, 256], ["Launcher", "scale", "4", "256"]),
        (bascule.current_device(), ["Device", place]),
        (bascule.compile(SCALE), ["Module", "scale"]),
        (bascule.cache.stats(), ["compiled="]),
        (bascule.LaunchConfig(4, 256), ["grid=(4, 1, 1)"]),
        (bascule.raw_pointer(16), ["0x10"]),
    ):
        for part in parts:
            assert part in repr(thing)


STRUCT = """
struct Settings { float scale; int offset; unsigned char mode; };
__global__ void apply(float* p, Settings s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = p[i] * s.scale + s.offset + s.mode;
}
"""


def test_a_struct_is_passed_by_value_as_its_bytes():
    kind = np.dtype([("scale", "f4"), ("offset", "i4"), ("mode", "u1")], align=True)
    apply = bascule.compile(STRUCT).apply
    values = np.arange(100, dtype="f4")  # exact, also with fused operations
    settings = np.array((2.0, 3, 4), kind)
    for given in (settings[()], settings.tobytes(), bytearray(settings.tobytes()), settings):
        x = bascule.to_device(values)
        apply[1, 128](x, given, 100)
        np.testing.assert_array_equal(x.copy_to_host(), values * np.float32(2) + np.float32(7))


def test_a_struct_of_another_size_names_both_sizes():
    apply = bascule.compile(STRUCT).apply
    x = bascule.to_device(np.zeros(10, "f4"))
    with pytest.raises(bascule.ArgumentError, match=r"argument 2 's'.*11 bytes.*exactly 12 bytes"):
        apply[1, 128](x, b"12345678901", 10)
    with pytest.raises(bascule.ArgumentError, match=r"argument 2 's'.*raw_bytes\(its 12 bytes\)"):
        apply[1, 128](x, {"scale": 1}, 10)


def test_an_import_loads_neither_numpy_nor_modules_that_cost_as_much_as_bascule_itself():
    """Runs without `site`, whose .pth files may import anything."""
    code = "import sys, bascule; print([m for m in ('numpy', 'inspect', 'statistics', 'html') if m in sys.modules])"
    package = str(Path(bascule.__file__).parents[1])
    answer = run_python("-S", "-c", code, PYTHONPATH=package)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")


def test_what_is_loaded_at_its_first_use_is_there_like_everything_else():
    for name in ("benchmark", "BenchmarkResult", "Explanation", "ArgumentExplanation"):
        assert name in dir(bascule)
        assert getattr(bascule, name).__module__ == "bascule"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        bascule.nothing  # noqa: B018
