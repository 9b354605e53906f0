"""`bascule.load_module`: code compiled elsewhere, with the parameter types of its mangled names and its text."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from conftest import stands_in

import bascule

RNG = np.random.default_rng(11)

KERNELS = """
struct Pair { float a; int b; };
enum Way : int { up, down };
namespace ns {
template <class T> __global__ void scale(T* p, T f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
template __global__ void scale<float>(float*, float, int);
template __global__ void scale<double>(double*, double, int);
}
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
__global__ void add(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
__global__ void view(bascule::array_view<const float, 2> x, float* out) {
    *out = 0;
    for (int i = 0; i < x.extent(0); ++i)
        for (int j = 0; j < x.extent(1); ++j) *out += x(i, j);
}
__global__ void lanes(float4 v, const float2* w, Pair p, Way way, float* out) {
    out[0] = v.x + v.w + w[1].y + p.a + p.b + way;
}
__device__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void plain(float* x, int n, float f, double d, short s, unsigned char c, Pair p) {
    x[0] = n + f + d + s + c + p.a + p.b + table[3];
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    module = bascule.compile(KERNELS)
    return module.plain.ptx


@pytest.fixture(scope="module")
def loaded(ptx: str) -> bascule.Module:
    return bascule.load_module(ptx)


def test_kernels_have_the_names_of_cpp(loaded: bascule.Module) -> None:
    assert sorted(loaded.kernels) == [
        "add(double const*, double*, int)",
        "add(float const*, float*, int)",
        "lanes",
        "ns::scale<double>",
        "ns::scale<float>",
        "plain",
        "view",
    ]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_instance_computes_as_numpy_does(loaded: bascule.Module, dtype: str) -> None:
    host = RNG.standard_normal(1000).astype(dtype)
    x = bascule.to_device(host)
    loaded[f"ns::scale<{'float' if dtype == 'f4' else 'double'}>"][8, 128](x, 3, 1000)
    np.testing.assert_array_equal(x.copy_to_host(), host * host.dtype.type(3))


def test_a_file_is_the_same_module(ptx: str, tmp_path: Path) -> None:
    file = tmp_path / "kernels.ptx"
    file.write_text(ptx)
    host = RNG.standard_normal(100).astype("f4")
    for given in (file, str(file), file.read_bytes()):
        x = bascule.to_device(host)
        bascule.load_module(given)["ns::scale<float>"][1, 128](x, 2.5, 100)
        np.testing.assert_array_equal(x.copy_to_host(), host * np.float32(2.5))


def test_overloads_are_told_apart_by_their_parameters(loaded: bascule.Module) -> None:
    host = RNG.standard_normal(100)
    x, y = bascule.to_device(host), bascule.to_device(host)
    loaded["add(double const*, double*, int)"][1, 128](x, y, 100)
    np.testing.assert_array_equal(y.copy_to_host(), 2 * host)
    with pytest.raises(bascule.CompileError, match=r"several kernels 'add'.*add\(float const\*, float\*, int\)"):
        loaded["add"]


def test_a_mangled_name_finds_its_kernel(loaded: bascule.Module) -> None:
    assert loaded["_Z3addPKfPfi"].signature == loaded["add(float const*, float*, int)"].signature


def test_arguments_are_checked_by_the_types_in_the_names(loaded: bascule.Module) -> None:
    scale = loaded["ns::scale<float>"]
    assert scale.signature == "void ns::scale<float>(float* arg1, float arg2, int arg3)"
    with pytest.raises(
        bascule.ArgumentTypeError, match=r"argument 1 'arg1': the kernel declares `float\*`, got a float64"
    ):
        scale[1, 1](bascule.zeros(3, "f8"), 1.0, 3)
    with pytest.raises(bascule.ArgumentTypeError, match="takes 3 arguments, got 2"):
        scale[1, 1](bascule.zeros(3, "f4"), 1.0)


def test_views_take_strides(loaded: bascule.Module) -> None:
    host = RNG.integers(0, 9, (6, 8)).astype("f4")
    out = bascule.zeros(1, "f4")
    loaded.view[1, 1](bascule.to_device(host)[::2, ::-1], out)
    assert out.copy_to_host()[0] == host[::2].sum()


def test_vector_types_and_structs_by_value(loaded: bascule.Module) -> None:
    out, w = bascule.zeros(1, "f4"), RNG.integers(0, 9, (2, 2)).astype("f4")
    pair = np.array((2.5, 7), dtype=[("a", "f4"), ("b", "i4")])[()]
    loaded.lanes[1, 1]((1, 2, 3, 4), bascule.to_device(w), pair, np.int32(1), out)
    assert out.copy_to_host()[0] == 1 + 4 + w[1, 1] + 2.5 + 7 + 1
    with pytest.raises(bascule.ArgumentTypeError, match="does not tell the members of a struct"):
        loaded.lanes[1, 1]((1, 2, 3, 4), bascule.to_device(w), (2.5, 7), np.int32(1), out)
    wrong = np.zeros((), dtype=[("a", "f4"), ("b", "i4"), ("c", "i4")])[()]
    with pytest.raises(bascule.ArgumentValueError, match="12 bytes"):
        loaded.lanes[1, 1]((1, 2, 3, 4), bascule.to_device(w), wrong, np.int32(1), out)


# --- Parameters without types


def arguments(x: bascule.DeviceArray) -> list[object]:
    pair = np.array((2.5, 7), dtype=[("a", "f4"), ("b", "i4")])[()]
    return [x, np.int32(3), 0.5, 0.25, np.int16(-2), np.uint8(200), pair]


def test_an_extern_c_kernel_is_checked_by_size(loaded: bascule.Module) -> None:
    x = bascule.zeros(1, "f4")
    loaded.plain[1, 1](*arguments(x))
    assert x.copy_to_host()[0] == 3 + 0.5 + 0.25 - 2 + 200 + 2.5 + 7 + 4
    assert loaded.plain.signature == (
        "void plain(8 bytes arg1, 4 bytes arg2, float arg3, double arg4, 2 bytes arg5, 1 byte arg6, 8 bytes arg7)"
    )


@pytest.mark.parametrize(
    "number",
    [ctypes.c_int(3), ctypes.c_uint(3), np.uint32(3), np.int32(3), b"\3\0\0\0", bascule.raw_bytes(np.int32(3))],
    ids=repr,
)
def test_a_number_with_a_type_goes_to_a_parameter_without_one(loaded: bascule.Module, number: object) -> None:
    x = bascule.zeros(1, "f4")
    given = arguments(x)
    given[1] = number
    loaded.plain[1, 1](*given)
    assert x.copy_to_host()[0] == 215.25


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            1,
            3,
            r"argument 2 'arg2': .* `4 bytes`, got 3\. .*NumPy scalar or a ctypes number of 4 bytes",
        ),
        (1, 3.0, "does not say the parameter's type"),
        (1, np.int64(3), r"got 3 \(int64\)"),
        (4, np.float32(1), r"`2 bytes`, got the float 1\.0 \(float32\)"),
        (0, 17, "`8 bytes`, got 17. .*a device array for a pointer"),
        (5, b"ab", "Pass exactly 1 byte"),
        (6, (2.5, 7), "does not tell the members"),
        (1, None, "None is a null pointer, and this is not a pointer"),
        (2, "x", "the kernel declares `float`"),
    ],
)
def test_what_the_size_leaves_open_is_refused(loaded: bascule.Module, place: int, value: object, message: str) -> None:
    given = arguments(bascule.zeros(1, "f4"))
    given[place] = value
    with pytest.raises((bascule.ArgumentTypeError, bascule.ArgumentValueError), match=message):
        loaded.plain[1, 1](*given)


def test_an_array_for_an_untyped_parameter_is_contiguous_and_writable(loaded: bascule.Module) -> None:
    host = np.zeros(4, "f4")
    with pytest.raises(bascule.ArgumentValueError, match="C-contiguous"):
        loaded.plain[1, 1](*arguments(bascule.to_device(host)[::2]))


# --- Variables


def test_variables_are_arrays_of_bytes(loaded: bascule.Module) -> None:
    table = loaded.get_global("table")
    assert (table.shape, str(table.dtype)) == ((16,), "uint8")
    np.testing.assert_array_equal(table.copy_to_host().view("i4"), [1, 2, 3, 4])
    with pytest.raises(bascule.CompileError, match="no variable 'tables'. Did you mean 'table'"):
        loaded.get_global("tables")


def test_a_variable_that_the_host_writes_is_what_the_kernel_reads(ptx: str) -> None:
    module = bascule.load_module(ptx)
    module.get_global("table").copy_from_host(np.array([0, 0, 0, 1000], "i4").view("u1"))
    x = bascule.zeros(1, "f4")
    module.plain[1, 1](*arguments(x))
    assert x.copy_to_host()[0] == 1211.25


# --- Refusals


@pytest.mark.skipif(not bascule.current_device().emulated, reason="the emulated device runs no machine code")
def test_the_emulated_device_refuses_a_cubin() -> None:
    cubin = bascule.compile("__global__ void k(int*) {}", options={"arch": "sm_80"}).k.cubin
    with pytest.raises(bascule.ArgumentValueError, match="machine code of a GPU, and the emulated device runs PTX"):
        bascule.load_module(cubin)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (b"__global__ void k() {}", bascule.ArgumentValueError, "neither PTX nor a cubin.*it is CUDA C\\+\\+"),
        (b"\x50\xed\x55\xba" + bytes(60), bascule.ArgumentValueError, "fat binary.*cuobjdump"),
        (b"\x7fELF" + bytes(10), bascule.CompileError, "it is cut off"),
        (b"\x7fELF" + bytes(100), bascule.CompileError, "an ELF file of another kind"),
        (".version 8.0\n", bascule.CompileError, "it has no .target"),
        (".version 8.0\n.target sm_80\n.address_size 64\n", bascule.CompileError, "has no kernel.*bascule.link"),
        (b"", bascule.ArgumentValueError, "neither PTX"),
        (3, bascule.ArgumentTypeError, "takes a file's name"),
        ("nowhere.ptx", bascule.FileError, "nowhere.ptx"),
    ],
)
def test_what_is_no_code_is_refused(code: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bascule.load_module(code)  # type: ignore[arg-type]


@pytest.mark.skipif(
    stands_in(), reason="in the driver's place the emulated device refuses a kernel when it is looked up, without a log"
)
def test_ptx_that_the_assembler_refuses_names_the_line(ptx: str) -> None:
    broken = ptx.replace("ret;", "rat;")
    with pytest.raises((bascule.CompileError, bascule.CudaError), match="rat"):
        bascule.load_module(broken).plain[1, 1](*arguments(bascule.zeros(1, "f4")))


def test_cut_ptx_is_an_error_and_no_more(ptx: str) -> None:
    for length in range(0, len(ptx), 97):
        try:
            module = bascule.load_module(ptx[:length] + "\n", name="cut")
        except (bascule.CompileError, bascule.ArgumentValueError, bascule.CudaError):
            continue
        assert set(module.kernels) <= set(bascule.load_module(ptx).kernels)


def test_compile_says_what_loads_code(ptx: str, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(ptx)
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\xff\xfe" + bytes(90))
    with pytest.raises(bascule.ArgumentValueError, match=r"bascule.load_module\('k.ptx'\)"):
        bascule.compile("k.ptx")
    with pytest.raises(bascule.ArgumentValueError, match=r"bascule.load_module\('.*k.cubin'\)"):
        bascule.compile(file=tmp_path / "k.cubin")
    with pytest.raises(bascule.CompileError, match="is PTX, which is compiled already: bascule.load_module"):
        bascule.compile(file=tmp_path / "k.ptx")
    with pytest.raises(bascule.CompileError, match="is PTX, which is compiled already: bascule.load_module"):
        bascule.compile(ptx)
    with pytest.raises(bascule.ArgumentValueError, match="bascule.load_module"):
        bascule.compile(b"\x7fELF")  # type: ignore[arg-type]


def test_a_loaded_module_is_not_pickled(loaded: bascule.Module) -> None:
    import pickle

    for each in (loaded, loaded.plain):
        with pytest.raises(bascule.ArgumentTypeError, match="cannot be pickled: call bascule.link"):
            pickle.dumps(each)


def test_what_a_loaded_kernel_tells_of_itself(loaded: bascule.Module, ptx: str) -> None:
    kernel = loaded["ns::scale<float>"]
    assert kernel.ptx.strip() == ptx.strip("\0").strip()
    assert kernel.lowered_name == "_ZN2ns5scaleIfEEvPT_S1_i"
    assert kernel.parameters == [("arg1", "float*"), ("arg2", "float"), ("arg3", "int")]
    assert kernel.attributes.max_threads_per_block >= 1
    assert not kernel.is_template
    assert "ns::scale<float>" in repr(kernel)
    assert kernel[1, 32].explain(bascule.zeros(4, "f4"), 1, 4) is not None
