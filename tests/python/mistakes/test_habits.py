"""What users of other libraries type, and mistype: each message says what to write instead."""

from __future__ import annotations

import copy
import os
import pickle
import re
from typing import Any

import numpy as np
import pytest

import bascule

TEXT = """
struct M { float m[3][3]; };
struct V { int n; float v[2]; };
__global__ void f(float* p, int n) { p[threadIdx.x] = n; }
__global__ void transpose(M m, float* p) { p[threadIdx.x] = m.m[threadIdx.x % 3][threadIdx.x / 3]; }
__global__ void two(V v, float* p) { p[0] = v.n + v.v[1]; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(TEXT)


@pytest.fixture
def x() -> bascule.DeviceArray:
    return bascule.to_device(np.arange(9, dtype="f4"))


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("get", "x.copy_to_host() copies it to the host"),
        ("cpu", "x.copy_to_host() copies it to the host"),
        ("numpy", "x.copy_to_host() copies it to the host"),
        ("tolist", "x.copy_to_host().tolist()"),
        ("clone", "x.copy()"),
        ("copy_to_device", "x[...] = values, or x.copy_from_host(values)"),
        ("zero_", "x.fill(0)"),
        ("numel", "x.size"),
        ("sum", "use x.copy_to_host() and NumPy, or write a kernel"),
        ("cumsum", "use x.copy_to_host() and NumPy, or write a kernel"),
    ],
)
def test_methods_of_other_arrays_name_ours(name, cure, x):
    assert not hasattr(x, name)
    with pytest.raises(AttributeError) as refused:
        getattr(x, name)
    if "NumPy" not in cure or x.device.emulated:  # on a GPU the message names an installed library
        assert str(refused.value) == f"'bascule.DeviceArray' object has no attribute '{name}': {cure}."
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'$"):
        _ = x.nothing_like_it


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("asnumpy", "x.copy_to_host()"),
        ("empty", "bascule.device_array(shape, dtype)"),
        ("arange", "bascule.to_device(np.arange(...))"),
        ("random", "bascule.to_device(np.random.default_rng().random(n, dtype=np.float32))"),
        ("memcpy_htod", "x.copy_from_host(host)"),
        ("InOut", "bascule.to_device(x) before, x.copy_to_host() after"),
        ("sqrt", "np.sqrt(x.copy_to_host(), ...)"),
        ("array", "bascule.to_device(x)"),
        ("RawKernel", "bascule.compile(text)"),
        ("jit", "@bascule.kernel(text)"),
    ],
)
def test_functions_of_other_packages_name_ours(name, cure):
    with pytest.raises(AttributeError) as refused:
        getattr(bascule, name)
    assert str(refused.value).startswith(f"module 'bascule' has no attribute '{name}': ")
    assert cure in str(refused.value)


def test_functions_of_numpy_are_refused_by_name(x):
    for call in (lambda: np.add(x, 1), lambda: np.sqrt(x), lambda: np.ones(9) * x):
        with pytest.raises(TypeError, match=r"a DeviceArray has no arithmetic \((numpy\.\w+|\*)\): use "):
            call()
    for name in ("sum", "mean", "where", "unique", "allclose"):
        with pytest.raises(TypeError, match=rf"^numpy\.{name} takes no DeviceArray: use .*, or write a kernel\.$"):
            getattr(np, name)(*[x] * (2 if name == "allclose" else 1))
    with pytest.raises(TypeError, match=r"^numpy\.linalg\.norm takes no DeviceArray: use "):
        np.linalg.norm(x)
    with pytest.raises(TypeError, match=r"^numpy\.reshape takes no DeviceArray: write x\.reshape\(shape\)\.$"):
        np.reshape(x, (3, 3))


def test_no_function_of_numpy_takes_a_refusal_for_an_answer(x):
    for call in (np.array_equal, np.array_equiv):
        for other in (x, x.copy(), np.arange(9, dtype="f4")):
            with pytest.raises(TypeError, match="takes no DeviceArray"):
                call(x, other)
            with pytest.raises(TypeError, match="takes no DeviceArray"):
                call(other, x)


def test_functions_of_numpy_that_look_at_no_element_work(x):
    square = x.reshape(3, 3)
    assert (np.shape(square), np.ndim(square), np.size(square)) == ((3, 3), 2, 9)
    assert np.result_type(square, np.float64) == np.float64
    assert np.isrealobj(x)
    assert not np.iscomplexobj(x)
    np.testing.assert_array_equal(np.transpose(square, (1, 0)).copy_to_host(), square.copy_to_host().T)


def test_none_is_compared_by_identity(x):
    with pytest.raises(TypeError, match=r"has no ==: write `x is None`"):
        _ = x == None  # noqa: E711
    with pytest.raises(TypeError, match=r"has no !=: write `x is not None`"):
        _ = x != None  # noqa: E711


def test_a_device_is_no_number():
    device = bascule.current_device()
    assert device == bascule.device(device.ordinal)
    assert device != device.ordinal
    assert device != None  # noqa: E711


def test_get_function_is_the_module_item(module, x):
    module.get_function("f")[1, 9](x, 7)
    assert (x.copy_to_host() == 7).all()
    with pytest.raises(bascule.CompileError, match="has no kernel 'g'"):
        module.get_function("g")


def test_a_copy_is_a_copy(x):
    for other in (copy.copy(x), copy.deepcopy([x])[0]):
        x.fill(5)
        np.testing.assert_array_equal(other.copy_to_host(), np.arange(9, dtype="f4"))
        x[...] = other


def test_options_go_by_position():
    text = "__global__ void k(float* p) { *p = N; }"
    y = bascule.zeros(1, "f4")
    for number, options in ((3, ["-DN=3"]), (4, bascule.CompileOptions(defines={"N": "4"}))):
        bascule.compile(text, options).k[1, 1](y)
        assert y.copy_to_host()[0] == number


def test_the_options_of_a_decorator_go_by_position_too():
    rule = bascule.kernel("__global__ void k(float* p) { *p = N; }", ["-DN=5"])(lambda p: 1)
    y = bascule.zeros(1, "f4")
    rule(y)
    assert y.copy_to_host()[0] == 5


def test_the_name_of_a_kernel_is_no_option():
    with pytest.raises(TypeError, match=r"got str 'k': a kernel is taken from the module, bascule.compile\(text\).k$"):
        bascule.compile("__global__ void k() {}", "k")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-O3", "NVRTC always optimises: leave it out"),
        ("-Wall", "it is for a host compiler: leave it out"),
        ("-Xcompiler=-fPIC", "it is for a host compiler: leave it out"),
        ("-lcudart", "nothing is linked: leave it out"),
        ("-g", "for line numbers it is -lineinfo, for a debugger the option `debug`"),
    ],
)
def test_an_option_of_nvcc_says_that_it_is_not_needed(option, said):
    with pytest.raises(bascule.CompileError) as refused:
        bascule.compile("__global__ void k() {}", options=[option])
    assert f"{option} found; {said}" in str(refused.value)


def test_nothing_is_no_text():
    for call in (bascule.compile, lambda: bascule.compile(None)):
        with pytest.raises(TypeError, match=r"takes CUDA C\+\+ as a str, or .*file='kernels.cu'\); got None"):
            call()


def test_a_shape_for_a_number_is_a_tuple_of_one(module, x):
    with pytest.raises(
        TypeError, match=r"`int`, got a tuple of one number\. Pass the number itself, such as x.shape\[0\]"
    ):
        module.f[1, 9](x, x.shape)
    with pytest.raises(TypeError, match=r"got a tuple of 2 numbers\. Pass one of them, such as x.shape\[0\]"):
        module.f[1, 9](x, x.reshape(3, 3).shape)
    with pytest.raises(TypeError, match=r"got an empty tuple\. Pass a number"):
        module.f[1, 9](x, ())


def test_a_float_as_shared_bytes_says_how_to_make_an_integer(module, x):
    with pytest.raises(
        TypeError, match=r"`shared_bytes` must be an integer, got the float 32.0: write int\(...\), or //"
    ):
        module.f[1, 9, None, 4.0 * 8](x, 1)
    with pytest.raises(TypeError, match="`shared_bytes` must be an integer, the bytes of shared memory, got 'many'"):
        module.f[1, 9, None, "many"](x, 1)


def test_grid_and_block_as_keywords_are_shown_in_brackets(module, x):
    with pytest.raises(TypeError, match=r"'f' takes the grid and the block in brackets: f\[1, \(2, 2\)\]\(\.\.\.\)"):
        module.f(x, 1, grid=1, block=(2, 2))
    with pytest.raises(TypeError, match=r"f\[7, block\]\(\.\.\.\)"):
        module.f(x, 1, grid=7)


def test_a_module_is_a_sequence_of_names(module):
    assert list(module) == list(module.kernels)
    assert "f" in module
    assert "g" not in module or "g" in module.kernels


def test_only_a_tuple_that_can_be_a_grid_is_offered_as_one(module, x):
    with pytest.raises(TypeError, match=r"Write kernel\[4, 4, None\] for a grid of 4 and a block of 4"):
        module.f[(4, 4, None)](x, 1)
    with pytest.raises(TypeError, match=r"Write kernel\[\(4, 4\), block\] for a grid of \(4, 4\) blocks, or kernel"):
        module.f[(4, 4)](x, 1)


def test_a_matrix_fits_a_struct_whose_only_member_is_one(module, x):
    matrix = np.arange(9, dtype="f4").reshape(3, 3) + 1
    for given in (matrix, matrix.tolist(), (matrix.tolist(),)):
        x.fill(0)
        module.transpose[1, 9](given, x)
        np.testing.assert_array_equal(x.copy_to_host().reshape(3, 3), matrix.T)
    module.two[1, 1]((1, (2, 3)), x)
    assert x.copy_to_host()[0] == 4
    with pytest.raises(ValueError, match=r"`V`, got 3 numbers\. Pass a tuple of 2 values"):
        module.two[1, 1]((1, 2, 3), x)
    for given in (matrix.ravel(), matrix[:2], np.zeros((4, 4), "f4")):
        with pytest.raises(ValueError, match=r"Pass a tuple of 3 tuples, or an array of shape \(3, 3\)\."):
            module.transpose[1, 9](given, x)


def message_of(text: str) -> str:
    with pytest.raises(bascule.CompileError) as refused:
        bascule.compile(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("parameter", "meant"),
    [
        ("flaot* p", "float"),
        ("duoble* p", "double"),
        ("itn n", "int"),
        ("unsinged n", "unsigned"),
        ("flot4* p", "float4"),
    ],
)
def test_a_mistyped_type_names_the_nearest(parameter, meant):
    assert f"did you mean {meant}?" in message_of(f"__global__ void k({parameter}) {{}}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__global__ void k(float* p) {\u00a0*p = 1; }", "the line has a no-break space (U+00A0): write a space."),
        ("__global__ void k() { printf(\u201chi\u201d); }", 'a typographic quote (U+201C): write "'),
        ("__global__ void k(float* p) { }\nint main() { return 0; }", "`#ifndef __CUDACC_RTC__`"),
        ("__global__ void k(float* p) { }\nvoid run(float* p) { k<<<1, 1>>>(p); }", "`#ifndef __CUDACC_RTC__`"),
        ("__global__ void k(float* p) { }\nvoid run(float* p) { }", "`#ifndef __CUDACC_RTC__`"),
        ("texture<float, 2> t;\n__global__ void k(float* p) { }", "pass bascule.texture(array)"),
        ("#include <pycuda-complex.hpp>\n__global__ void k(float* p) { }", "#include <cuda/std/complex> instead"),
        ("#include <cupy/complex.cuh>\n__global__ void k(float* p) { }", "#include <cuda/std/complex> instead"),
        ("__global__ void k(complex<float>* p) { }", "#include <cuda/std/complex> and write cuda::std::complex<float>"),
        ("#include <cupy/carray.cuh>\n__global__ void k(float* p) { }", "bascule::array_view<T, N>"),
        ("#include <helper_cuda.h>\n__global__ void k(float* p) { }", "it is for host code"),
        ("#include <torch/extension.h>\n__global__ void k(float* p) { }", "it is for host code"),
        (
            "constexpr int half(int n) { return n / 2; }\n__global__ void k(float* p) { *p = half(3); }",
            '`__device__` before it, or compile with CompileOptions(extra=["-default-device"])',
        ),
        ("__global__ void k(float* p) { }\n__host__ void run(float* p) { }", "`#ifndef __CUDACC_RTC__`"),
        ("__global__ void k(float* p) { *p = 3\uff1b }", "C++ has no \uff1b outside of strings and comments."),
        ("#include\u00a0<cstdint>\n__global__ void k(float* p) { }", "the line has a no-break space (U+00A0)"),
    ],
)
def test_what_a_cu_file_has_and_nvrtc_refuses_says_what_to_do(text, said):
    assert said in message_of(text)


def test_a_character_that_is_no_cpp_is_one_error():
    message = message_of("__global__ void k() { printf(\u201chi\u201d); }")
    assert message.count("unrecognized token") == 1
    assert "more errors that follow from it" in message


def test_a_header_for_host_programs_is_one_error_that_says_so():
    message = message_of("#include <thrust/device_vector.h>\n__global__ void k(float* p) { *p = 1; }")
    assert message.count("A function without execution space annotations") == 1
    assert "a header for host programs: put its #include" in message
    assert "more errors that follow from it" in message


def test_half_a_character_is_named_with_its_line():
    with pytest.raises(ValueError, match=r"U\+D83D in line 2 of the text is half of a character") as refused:
        bascule.compile("__global__ void k() {\n// \ud83d\n}")
    assert isinstance(refused.value, bascule.Error)
    with pytest.raises(ValueError, match=r"U\+D83D in '\\ud83d' is half of a character"):
        bascule.compile("__global__ void k() {}", {"defines": {"N": "\ud83d"}})


def test_the_encoding_of_a_file_is_guessed(tmp_path):
    for encoding, name in (("utf-16", "utf-16"), ("latin-1", "latin1")):
        (tmp_path / "k.cu").write_bytes("// Gr\u00f6\u00dfe\n__global__ void k() {}".encode(encoding))
        with pytest.raises(ValueError, match=rf"is not UTF-8 text: .* iconv -f {name} -t utf-8"):
            bascule.compile(file=tmp_path / "k.cu")


def test_a_byte_order_mark_of_a_header_that_is_a_text_is_no_part_of_it():
    y = bascule.zeros(1, "f4")
    text = '#include "four.h"\n__global__ void k(float* p) { *p = FOUR; }'
    bascule.compile(text, {"headers": {"four.h": "\ufeff#define FOUR 4\n"}}).k[1, 1](y)
    assert y.copy_to_host()[0] == 4


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    text = "\ufeff__global__ void k(float* p) { *p = 1; }"
    (tmp_path / "k.cu").write_text(text, encoding="utf-8")
    for module in (bascule.compile(text), bascule.compile(file=tmp_path / "k.cu")):
        y = bascule.zeros(1, "f4")
        module.k[1, 1](y)
        assert y.copy_to_host()[0] == 1


def structure() -> Any:
    return bascule.to_device(np.zeros(4, dtype=[("a", "f4"), ("b", "f4")]))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: bascule.zeros(4, "c8"),
            'x.view("f4") has the real and the imaginary parts in turn, or declare `cuda::std::complex<float>*`',
        ),
        (lambda: bascule.zeros(4, "c16"), "A kernel that takes the complex type can write the real parts"),
        (structure, 'Pass one field, x["name"], to a bascule::array_view'),
        (lambda: bascule.zeros(4, "f8"), 'Convert it with .astype("f4"), or declare `double*`'),
        (lambda: bascule.zeros(4, "M8[s]"), 'Its counts of units are x.view("i8"), which .astype("f4") converts, or'),
        (lambda: "text", "Pass a device array (anything with __cuda_array_interface__)"),
    ],
)
def test_no_conversion_is_advised_that_is_refused(make, said, module):
    with pytest.raises(TypeError) as refused:
        module.f[1, 4](make(), 1)
    assert said in str(refused.value)


@pytest.mark.parametrize("declared", ["float", "int", "double", "unsigned char", "bool", "long long"])
@pytest.mark.parametrize("given", ["f2", "f4", "f8", "i1", "i4", "i8", "u2", "?", "c8", "c16", "M8[s]", "m8[ms]"])
def test_every_astype_that_is_advised_works(declared, given):
    kernel = bascule.compile(f"__global__ void k({declared}* p) {{}}").k
    x = bascule.to_device(np.ones(4).astype(given))
    try:
        kernel[1, 1](x)
    except TypeError as error:
        message = str(error)
    else:
        return  # accepted as it is
    assert "use CuPy" not in message
    advised = re.search(r'((?:x\.view\("\w+"\))?)[^.]*\.astype\("(\w+)"\)', message)
    if advised:
        counts = x.view(advised[1][8:-2]) if advised[1] else x
        kernel[1, 1](counts.astype(advised[2]))
    else:
        assert given in ("c8", "c16")


def test_devices_are_counted_and_listed():
    everything = bascule.devices()
    assert bascule.device_count() == len(everything) >= 1
    assert [each.ordinal for each in everything] == list(range(len(everything)))
    assert bascule.device(0) == everything[0]


@pytest.mark.parametrize("given", [range(3), np.arange(3.0).tolist()], ids=["range", "list"])
def test_what_to_device_takes_is_told_so(given, module):
    with pytest.raises(TypeError, match=r"bascule\.to_device\("):
        module.f[1, 1](given, 3)


def test_a_template_of_a_decorator_is_chosen_by_name(x):
    text = "template <int N> __global__ void k(float* p) { if (threadIdx.x < 9) p[threadIdx.x] = N; }"
    with pytest.raises(TypeError, match=r'@bascule\.kernel\(text, name="k<\.\.\.>"\)'):
        bascule.kernel(text)(lambda p: p.size)(x)
    bascule.kernel(text, name="k<256>")(lambda p: p.size)(x)
    assert (x.copy_to_host() == 256).all()


@bascule.kernel("template <int N> __global__ void of(float* p) { if (threadIdx.x < 9) p[threadIdx.x] = N; }")
def of(p):
    return p.size


@bascule.kernel("__global__ void two(float* p) { *p = 4; } __global__ void two(int* p) { *p = 5; }")
def two(p):
    return 1


def test_an_instance_or_overload_of_a_rule_keeps_the_rule(x):
    seven = of.instantiate(7)
    for rule in (seven, copy.copy(seven), pickle.loads(pickle.dumps(seven)), of.instantiate(N=7)):
        x[...] = np.nan
        rule(x)
        assert (x.copy_to_host() == 7).all()
    assert "of<7>" in repr(seven)
    two.overload("float*")(x)
    assert x.copy_to_host()[0] == 4
    with pytest.raises(TypeError, match="argument 1 'p'"):
        two.overload("int*")(x)


def test_a_file_that_is_missing_is_the_first_thing_that_run_says(tmp_path, capsys):
    from bascule.__main__ import main

    assert main(["run", str(tmp_path / "nope.cu")]) != 0
    assert f"cannot read the file {tmp_path}/nope.cu: No such file or directory" in capsys.readouterr().err


STRUCTS = """
template <class T> struct Matrix { T m[4][4]; };
__global__ void trace(const Matrix<float>* m, float* sums) {
    sums[threadIdx.x] = 0;
    for (int i = 0; i < 4; ++i) sums[threadIdx.x] += m[threadIdx.x].m[i][i];
}
"""


def test_numbers_that_are_structures_are_told_how_to_be_viewed_as_such():
    kernel = bascule.compile(STRUCTS).trace
    matrices = np.random.default_rng(3).random((8, 4, 4), dtype="f4")
    x, sums = bascule.to_device(matrices), bascule.to_device(np.full(8, np.nan, "f4"))
    with pytest.raises(TypeError, match=r"Where the last axes are .*x\.reshape\(-1\)\.view\(\"V64\"\)"):
        kernel[1, 8](x, sums)
    kernel[1, 8](x.reshape(-1).view("V64"), sums)
    np.testing.assert_allclose(sums.copy_to_host(), np.trace(matrices, axis1=1, axis2=2), rtol=1e-6)
    for other in (x[:, :3], x.astype("f8")):
        with pytest.raises(TypeError, match=r"structures of 64 bytes") as raised:
            kernel[1, 8](other.copy(), sums)
        assert "last axes" not in str(raised.value)


def test_opaque_bytes_are_told_how_to_be_numbers(module):
    bits = bascule.to_device(np.zeros(8, "V4"))
    with pytest.raises(TypeError, match=r'View the bytes as numbers, x\.view\("f4"\)'):
        module.f[1, 8](bits, 8)
    module.f[1, 8](bits.view("f4"), 8)


def test_a_tuple_fits_a_padded_struct(x):
    dtype = np.dtype([("id", "i1"), ("w", "f8"), ("k", "i2")], align=True)
    gaps = np.dtype({"names": ["id", "w"], "formats": ["i1", "f4"], "offsets": [3, 12], "itemsize": 20})
    for struct, values in ((dtype, (1, 2.5, 3)), (gaps, (1, 2.5))):
        sum_of = " + ".join(f"p.{name}" for name in struct.names)
        text = bascule.struct(struct, "P") + f"__global__ void f(P p, float* x) {{ x[0] = {sum_of}; }}"
        bascule.compile(text).f[1, 1](values, x)
        assert x.copy_to_host()[0] == sum(values)


def test_an_auto_behind_a_concept_is_deduced(x):
    text = """template <class T> concept F = sizeof(T) == 4;
    __global__ void add(F auto* x, F auto y) { x[threadIdx.x] += y; }"""
    bascule.compile(text, options=bascule.CompileOptions(std="c++20")).add[1, 9](x, np.float32(2))
    assert (x.copy_to_host() == np.arange(9) + 2).all()


def test_what_is_declared_and_not_defined_is_no_kernel(x):
    module = bascule.compile("__global__ void later(float* x); __global__ void now(float* x) { x[0] = 7; }")
    assert module.kernels == ["now"]
    module.now[1, 1](x)
    assert x.copy_to_host()[0] == 7
    with pytest.raises(bascule.CompileError, match="'later' cannot be launched: it is declared, and .* not define"):
        module.later[1, 1](x)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__global__ void ${name}(float* x) {}", r"help: a placeholder is left in the text: fill it in"),
        ("__global__ void %(name)s(float* x) {}", r"help: a placeholder is left in the text: fill it in"),
        ("__global__ void f({{ type }}* x) {}", r"help: a placeholder is left in the text: fill it in"),
        ("{% if fast %}\n__global__ void f(float* x) {}\n{% endif %}", r"help: a placeholder is left in the text"),
        ("__global__ void f(float* x) {{ *x = {value}; }}", r"placeholder .*: in Python, write f before the text"),
        ("__global__ void f(float* x) x[0] = 1; }", r'expected a "\{"'),
        ("__global__ void f(float* x)", r"at the end of the text: error"),
    ],
)
def test_a_text_that_cannot_be_read_gets_the_compilers_error(text, said):
    with pytest.raises(bascule.CompileError, match=said):
        bascule.compile(text)


def test_braces_of_cpp_are_no_placeholders():
    for body in ("float y{value};", "int a[1][1] = {{n + m}};", "int a = n %(m);"):
        assert "placeholder" not in message_of(f"__global__ void f(int n) {{ {body} }}")


def test_lines_that_a_text_renames_are_shown_where_they_stand():
    lines = "// one\n#line 100\n__global__ void f(float* x) {\n    x[threadIdx.x + (1 << 30)] = y;\n}\n"
    with pytest.raises(bascule.CompileError) as raised:
        bascule.compile(lines)
    diagnostic = raised.value.diagnostics[0]
    assert (diagnostic.line, diagnostic.source_line.strip()) == (4, "x[threadIdx.x + (1 << 30)] = y;")


def test_a_deprecated_type_is_warned_of_in_the_users_text_alone(recwarn):
    bascule.compile("__global__ void f(double4* x) { x[0].x = 1; } // deprecated once")
    assert not [warning for warning in recwarn if "bascule_prelude" in warning.filename]


@pytest.mark.skipif(os.environ["BASCULE_DEVICE"] != "emulated", reason="a GPU reports no places")
def test_a_fault_in_nvrtcs_own_header_names_no_file(x):
    kernel = bascule.compile("__global__ void f(float* x, unsigned long long t) { x[0] = tex2D<float>(t, 0, 0); }").f
    kernel[1, 1](x, 3)
    with pytest.raises(bascule.CudaError) as raised:
        bascule.synchronize()
    bascule.emulated.reset()
    assert "of a header that is built into NVRTC" in str(raised.value)
    assert "__nv_nvrtc" not in str(raised.value)
