"""Bad input: the right exception, a message that names the argument and the remedy, and nothing enqueued."""

from __future__ import annotations

import os
import subprocess
import textwrap

import numpy as np
import pytest
from child_process import run_python
from conftest import SCALE, traced

import bascule


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_python("-c", textwrap.dedent(code), **environment)


def message(caught: pytest.ExceptionInfo[BaseException], *parts: str) -> None:
    text = str(caught.value)
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"


# --- Compiling -------------------------------------------------------------------------------------------------------


def test_an_unknown_kernel_name_suggests_the_nearest(scale):
    module = bascule.compile(SCALE)
    with pytest.raises(bascule.CompileError) as caught:
        module.scael  # noqa: B018
    message(caught, "scael", "Did you mean 'scale'")
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(module, "_repr_png_")
    with pytest.raises(bascule.CompileError):
        module["nothing_like_it"]


def test_source_and_file_together_are_refused(tmp_path):
    with pytest.raises(TypeError, match="not both"):
        bascule.compile(SCALE, file=tmp_path / "k.cu")
    with pytest.raises(TypeError, match=r"file=\.\.\."):
        bascule.compile(tmp_path / "k.cu")


def test_no_nvrtc_lists_every_path_tried():
    result = run(
        """
        import bascule
        bascule.config.nvrtc_library = "/nowhere/libnvrtc.so"
        try:
            bascule.compile("__global__ void k() {}")
        except bascule.LibraryError as error:
            print(error.paths_tried, error)
        """
    )
    assert result.returncode == 0, result.stderr
    assert "/nowhere/libnvrtc.so" in result.stdout
    assert "pip install" in result.stdout


# --- Arguments -------------------------------------------------------------------------------------------------------


@pytest.fixture
def x():
    return bascule.to_device(np.ones(100, "f4"))


def refused(scale, error, *arguments):
    scale.prepare()
    if not bascule.current_device().emulated:
        with pytest.raises(error) as caught:
            scale[1, 128](*arguments)
        return caught
    with traced() as operations, pytest.raises(error) as caught:
        scale[1, 128](*arguments)
    assert operations == []
    return caught


def test_too_few_and_too_many_arguments_show_the_signature(scale, x):
    for arguments in ((x, 1), (x, 1, 2, 3), ()):
        caught = refused(scale, TypeError, *arguments)
        message(caught, "3 arguments", f"got {len(arguments)}", "void scale(float* p, float f, int n)")


def test_float64_for_a_float_pointer_names_both_types(scale):
    caught = refused(scale, TypeError, bascule.to_device(np.ones(1000)), 2, 1000)
    message(caught, "argument 1 'p'", "`float*`", "float64 array of shape (1000,)", 'astype("f4")', "`double*`")
    assert caught.value.index == 0
    assert caught.value.name == "p"
    assert caught.value.expected == "float*"


# --- Geometry and streams --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "block", "parts"),
    [
        ((1, 65536), 1, ["grid", "65536", "65535"]),
        (1, 1025, ["block", "1025", "1024"]),
        (2**40, 1, ["grid"]),
        (-1, 1, ["grid", "-1"]),
        (1, -1, ["`block` is -1, which is below 0"]),
        (1, 2**70, [f"`block` is {2**70}, which is above the limit of every device"]),
    ],
    ids=str,
)
def test_an_impossible_geometry_names_the_limit(scale, x, grid, block, parts):
    with pytest.raises(ValueError) as caught:
        scale[grid, block](x, 1, 100)
    message(caught, *parts)


@pytest.mark.parametrize("key", [4, (4,), (1, 2, 3, 4, 5), (1.0, 2), ("a", 1), ((1, 2, 3, 4), 1), (True, 1)], ids=str)
def test_a_wrong_configuration_says_the_form(scale, key):
    with pytest.raises(TypeError, match="kernel\\[grid, block\\]|integer"):
        scale[key]


def test_a_kernel_called_without_configuration_says_how(scale, x):
    with pytest.raises(TypeError, match=r"scale\[grid, block\]"):
        scale(x, 1, 100)


def test_a_stream_that_is_none_is_named(scale):
    for stream in ("1", 1.5, object(), True):
        with pytest.raises(TypeError, match="stream"):
            scale[1, 1, stream]
    with pytest.raises(ValueError, match="stream"):
        scale[1, 1, -1]


# --- Devices ---------------------------------------------------------------------------------------------------------


def test_auto_says_once_that_it_emulates_or_takes_the_gpu():
    result = run(
        """
        import bascule, warnings
        warnings.simplefilter("always")
        d = bascule.current_device()
        bascule.stream(); bascule.device_array(3, "f4")
        print("emulated" if d.emulated else "gpu")
        """,
        BASCULE_DEVICE="auto",
    )
    assert result.returncode == 0, result.stderr
    count = result.stderr.count("EmulatedDeviceWarning")
    expected = [("emulated", 1), ("gpu", 0)]
    if os.environ.get("BASCULE_DEVICE") == "cuda":  # the driver itself may be the emulated device: no warning
        expected.append(("emulated", 0))
    assert (result.stdout.strip(), count) in expected
    assert count == 0 or "<string>:4: EmulatedDeviceWarning" in result.stderr


def test_requiring_a_gpu_turns_the_fallback_into_an_error(emulated):
    with pytest.raises(bascule.LibraryError, match="GPU"):
        bascule.require_gpu()


def test_importing_asks_no_driver_and_no_compiler():
    result = run(
        """
        import bascule
        maps = open("/proc/self/maps").read()
        print("libcuda" in maps or "libnvrtc" in maps or "bascule_emulator" in maps)
        """
    )
    assert result.stdout.strip() == "False", result.stderr


def test_every_error_is_of_our_own_class_and_of_the_builtin():
    assert issubclass(bascule.ArgumentError, bascule.Error)
    assert issubclass(bascule.CudaError, RuntimeError)
    assert issubclass(bascule.LibraryError, OSError)
    assert issubclass(bascule.EmulatedDeviceWarning, UserWarning)
    with pytest.raises(AttributeError, match="nvrtc_library"):
        bascule.config.nvrtc_libary = "x"


def test_signatures_name_types_as_python_knows_them():
    """pybind11 writes the C++ name of a type that it does not know yet, also into errors about arguments."""
    signatures = [
        f"{kind.__name__}.{name}: {line}"
        for kind in vars(bascule).values()
        if isinstance(kind, type)
        for name, member in vars(kind).items()
        for line in (getattr(member, "__doc__", None) or "").splitlines()
        if line.startswith(f"{name}(")
    ]
    assert len(signatures) > 50
    assert [signature for signature in signatures if "::" in signature] == []


def test_variables_that_the_device_has_no_memory_for_are_a_memory_error(emulated: None) -> None:
    source = (
        "__device__ char a[1 << 30], b[1 << 30], c[1 << 30]; __global__ void k(char* p) { *p = a[0] + b[0] + c[0]; }"
    )
    module = bascule.compile(source)
    x = bascule.to_device(np.zeros(4, "i1"))
    for use in (lambda: module.k[1, 1](x), lambda: module.get_global("a")):
        with pytest.raises(MemoryError, match=r"variables of this module need 3221225472 bytes, and \d+ of") as caught:
            use()
        assert isinstance(caught.value, bascule.CudaError)
    assert (x.copy_to_host() == 0).all()  # the context is still usable
