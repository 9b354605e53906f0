"""`bascule.link`: several texts, modules and codes as one program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from child_process import printed_by

import bascule

RNG = np.random.default_rng(12)

TWICE = """
static __device__ float bias = 5;
__device__ float table[8];
__constant__ int steps[2] = {3, 4};
__device__ float twice(float x) { return 2 * x + bias; }
__device__ int calls;
"""

USES = """
extern __device__ float table[8];
extern __device__ int calls;
__device__ float twice(float);
static __device__ float bias = 3;
__global__ void apply(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = twice(x[i]) + table[i % 8] + bias;
    atomicAdd(&calls, 1);
}
"""


@pytest.fixture(scope="module")
def program(machine_code: None) -> bascule.Module:
    return bascule.link([USES, TWICE])


def expected(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.asarray(np.float32(2) * x + np.float32(5) + table[np.arange(len(x)) % 8] + np.float32(3))


def test_functions_and_variables_of_another_text(program: bascule.Module) -> None:
    host, values = RNG.integers(0, 99, 1000).astype("f4"), RNG.integers(0, 9, 8).astype("f4")
    table, calls = program.get_global("table"), program.get_global("calls")
    assert (table.shape, str(table.dtype), str(calls.dtype)) == ((8,), "float32", "int32")
    calls[...] = 0
    table.copy_from_host(values)
    x = bascule.to_device(host)
    program.apply[8, 128](x, 1000)
    np.testing.assert_array_equal(x.copy_to_host(), expected(host, values))
    assert calls.copy_to_host() == 1000


def test_the_signature_has_the_texts_own_names(program: bascule.Module) -> None:
    assert program.apply.signature == "void apply(float* x, int n)"
    with pytest.raises(bascule.ArgumentTypeError, match="argument 1 'x': the kernel declares `float\\*`"):
        program.apply[1, 1](bascule.zeros(3, "i4"), 3)


@pytest.mark.usefixtures("machine_code")
def test_the_order_of_the_texts_does_not_matter() -> None:
    host = RNG.standard_normal(64).astype("f4")
    x = bascule.to_device(host)
    bascule.link([TWICE, USES]).apply[1, 64](x, 64)
    np.testing.assert_allclose(x.copy_to_host(), expected(host, np.zeros(8, "f4")), rtol=1e-6)


@pytest.mark.usefixtures("machine_code")
def test_files_modules_ptx_and_bytes_are_parts(tmp_path: Path) -> None:
    (tmp_path / "shared.cuh").write_text("__device__ int one(int);\n#define STEP 10\n")
    (tmp_path / "uses.cu").write_text('#include "shared.cuh"\n__global__ void f(int* x) { *x = one(*x) + STEP; }')
    ptx = bascule.compile(
        "__device__ int two(int x) { return x * 7; } __global__ void unused() {}", options=["-rdc=true"]
    ).unused.ptx
    module = bascule.compile(
        """
        __device__ int two(int);
        __device__ int one(int x) { return two(x) + N; }
        __global__ void g(int* x) { *x = N; }
        """,
        options={"defines": {"N": 5}, "extra": ["-rdc=true"]},
    )
    parts = [tmp_path / "uses.cu", module, ptx]
    for given in (parts, [str(parts[0]), module, ptx.encode()]):
        program = bascule.link(given)
        assert sorted(program.kernels) == ["f", "g", "unused"]
        x = bascule.to_device(np.array([3], "i4"))
        program.f[1, 1](x)
        assert x.copy_to_host()[0] == 3 * 7 + 5 + 10
        program.g[1, 1](x)
        assert x.copy_to_host()[0] == 5


def test_a_linked_module_is_a_part_again(program: bascule.Module) -> None:
    more = bascule.link([program, "__device__ float twice(float); __global__ void h(float* x) { *x = twice(*x); }"])
    x = bascule.to_device(np.array([4], "f4"))
    more.h[1, 1](x)
    assert x.copy_to_host()[0] == 13


@pytest.mark.usefixtures("machine_code")
def test_templates_by_the_name_expressions_of_a_module() -> None:
    templates = bascule.compile(
        """
        __device__ float factor();
        namespace ns { template <class T> __global__ void scale(T* p) { *p *= factor(); } }
        """,
        name_expressions=["ns::scale<float>", "ns::scale<double>"],
        options=["-rdc=true"],
    )
    program = bascule.link([templates, "__device__ float factor() { return 1.5f; }"])
    for name, dtype in (("ns::scale<float>", "f4"), ("ns::scale<double>", "f8"), ("scale<float>", "f4")):
        x = bascule.to_device(np.array([4], dtype))
        program[name][1, 1](x)
        assert x.copy_to_host()[0] == 6
    with pytest.raises(bascule.CompileError, match="several kernels 'scale'.*ns::scale<float>"):
        program["scale"]


@pytest.mark.usefixtures("machine_code")
def test_options_hold_for_the_texts() -> None:
    texts = ["__device__ int n() { return N; }", "__device__ int n(); __global__ void f(int* x) { *x = n() + N; }"]
    x = bascule.zeros(1, "i4")
    bascule.link(texts, options={"defines": {"N": 21}}).f[1, 1](x)
    assert x.copy_to_host()[0] == 42


def test_structs_and_constants_of_linked_texts(program: bascule.Module) -> None:
    struct = "struct P { float a; int b; };"
    linked = bascule.link(
        [
            struct + "__device__ float sum(P); __global__ void f(P p, float* out) { *out = sum(p); }",
            struct + "__device__ float sum(P p) { return p.a + p.b; }",
        ]
    )
    out = bascule.zeros(1, "f4")
    linked.f[1, 1]((1.5, 4), out)
    assert out.copy_to_host()[0] == 5.5
    wrong = np.zeros((), dtype=[("a", "f4"), ("b", "f4")])[()]
    with pytest.raises(bascule.ArgumentTypeError, match="field 'b' is `int` in the kernel's `P` and float32"):
        linked.f[1, 1](wrong, out)
    np.testing.assert_array_equal(program.get_global("steps").copy_to_host(), [3, 4])


@pytest.mark.usefixtures("machine_code")
def test_printf_and_static_functions_of_several_texts(capfd: pytest.CaptureFixture[str]) -> None:
    text = """
        static __device__ int own() {{ return {0}; }}
        __global__ void {1}() {{ printf("{1} says %d\\n", own()); }}
    """
    program = bascule.link([text.format(1, "first"), text.format(2, "second"), text.format(3, "third")])
    for name in ("first", "second", "third"):
        program[name][1, 1]()
        bascule.synchronize()
    assert capfd.readouterr().out.split("\n")[:3] == ["first says 1", "second says 2", "third says 3"]


# --- Errors


CALLS = "__device__ float f(float); __global__ void k(float* x) { *x = f(*x); }"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        pytest.param(
            CALLS,
            "__device__ int g() { return 1; }",
            r"function 'f\(float\)' is used in .*test_link.py.*, and none of the linked texts defines it",
            id="undefined",
        ),
        pytest.param(
            CALLS,
            "__device__ float f(double) { return 1; }",
            r"test_link.py:\d+ has function 'f\(double\)': the declarations differ",
            id="other parameters",
        ),
        pytest.param(
            "extern __device__ int n; __global__ void k(int* x) { *x = n; }",
            "static __device__ int n = 3; __global__ void j(int* x) { *x = n; }",
            "variable 'n' is used in .* has one that is static: remove `static`",
            id="static",
        ),
        pytest.param(
            "__device__ int n = 1; __global__ void k(int* x) { *x = n; }",
            "__device__ int n = 2; __global__ void j(int* x) { *x = n; }",
            r"variable 'n' is defined in .*test_link.py:\d+ and in .*test_link.py:\d+\. Define it in one text",
            id="two variables",
        ),
        pytest.param(
            "__device__ int f() { return 1; }",
            "__device__ int f() { return 2; } __global__ void k(int* x) { *x = f(); }",
            r"function 'f\(\)' is defined in",
            id="two functions",
        ),
        pytest.param(
            "__global__ void k() {}",
            "__global__ void k() {}",
            r"kernel 'k\(\)' is defined in .* and in .*test_link.py:\d+ \(2\)",  # equal texts have one place
            id="two kernels",
        ),
        pytest.param(
            'extern "C" __device__ int f(); __global__ void k(int* x) { *x = f(); }',
            "__device__ int f() { return 2; }",
            r'has function .f\(\).: extern "C" stands in one of the two alone',
            id="linkage",
        ),
    ],
)
def test_names_that_do_not_fit(first: str, second: str, message: str) -> None:
    with pytest.raises(bascule.CompileError, match=message):
        bascule.link([first, second])


@pytest.mark.usefixtures("machine_code")
def test_texts_without_a_kernel_are_refused() -> None:
    with pytest.raises(bascule.CompileError, match="has no kernel"):
        bascule.link(["__device__ int f() { return 1; }", "__device__ int g() { return 1; }"])


def test_a_syntax_error_is_at_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "bad.cu").write_text("__device__ int f() {\n  return undefined_name;\n}")
    with pytest.raises(bascule.CompileError, match=r"bad\.cu:2|bad\.cu\(2\)"):
        bascule.link([tmp_path / "bad.cu", "__global__ void k() {}"])


def test_a_fault_names_the_line_of_its_text(tmp_path: Path) -> None:
    if not bascule.current_device().emulated:
        pytest.skip("a GPU does not tell lines")
    (tmp_path / "writes.cu").write_text("__device__ void put(int* p) {\n\n  p[1ll << 40] = 1;\n}")
    caller = "__device__ void put(int*);\n__global__ void k(int* p) { put(p); }"
    bascule.link([tmp_path / "writes.cu", caller]).k[1, 1](bascule.zeros(1, "i4"))
    with pytest.raises(bascule.CudaError, match=r"writes\.cu:3|line 3 of .*writes\.cu"):
        bascule.synchronize()


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], bascule.ArgumentValueError, "nothing to link"),
        ("__global__ void k() {}", bascule.ArgumentTypeError, "takes a list"),
        ([3], bascule.ArgumentTypeError, "takes texts, files' names, bytes and modules; got int"),
        ([b"abc"], bascule.ArgumentValueError, "neither PTX"),
        (["nowhere.cu"], bascule.FileError, "nowhere.cu"),
    ],
)
def test_what_cannot_be_linked(parts: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bascule.link(parts)  # type: ignore[arg-type]


# --- The cache

CACHED = """
import sys, bascule
from pathlib import Path
before = bascule.cache.stats().compiled
program = bascule.link([Path(sys.argv[1]), "__device__ int n(); __global__ void f(int* x) { *x = n(); }"])
x = bascule.zeros(1, "i4")
program.f[1, 1](x)
print(x.copy_to_host()[0], bascule.cache.stats().compiled - before, program.f.origin)
"""


def run(file: Path, cache: Path) -> list[str]:
    return printed_by("-c", CACHED, file, BASCULE_CACHE_DIR=str(cache)).split()


@pytest.mark.usefixtures("machine_code")
def test_a_linked_program_is_found_on_disk_until_a_text_or_a_header_changes(tmp_path: Path) -> None:
    file, header, cache = tmp_path / "n.cu", tmp_path / "n.cuh", tmp_path / "cache"
    header.write_text("#define N 3\n")
    file.write_text('#include "n.cuh"\n__device__ int n() { return N; }')
    assert run(file, cache) == ["3", "3", "compiled"]  # two texts, and the linked result
    assert run(file, cache) == ["3", "0", "disk"]
    header.write_text("#define N 44\n")
    assert run(file, cache) == ["44", "2", "compiled"]  # one text, and the linked result
    header.write_text("#define N 3\n")
    assert run(file, cache) == ["3", "0", "disk"]


@pytest.mark.usefixtures("machine_code")
def test_the_same_parts_are_linked_once_a_process() -> None:
    texts = ["__device__ int q() { return 9; }", "__device__ int q(); __global__ void f(int* x) { *x = q(); }"]
    bascule.link(texts)
    before = bascule.cache.stats().compiled
    assert bascule.link(texts).f.origin == "memory"
    assert bascule.cache.stats().compiled == before


@pytest.mark.usefixtures("machine_code")
def test_a_linked_program_has_the_variables_that_its_parts_name():
    text = """
    template <class T> __constant__ T table[4];
    template <class T> __global__ void look(T* out) { out[threadIdx.x] = table<T>[threadIdx.x]; }
    """
    part = bascule.compile(text, name_expressions=["look<float>", "table<float>"])
    program = bascule.link([part, "__device__ int other = 3; __global__ void use(int* x) { *x = other; }"])
    program.get_global("table<float>").copy_from_host(np.array([1, 2, 3, 4], "f4"))
    out = bascule.device_array(4, "f4")
    program["look<float>"][1, 4](out)
    np.testing.assert_array_equal(out.copy_to_host(), [1, 2, 3, 4])
