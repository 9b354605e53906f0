"""The compiler decides which kernels a text declares: #if, macros, overloads, namespaces."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from child_process import printed_by

import bascule

TREE = Path(__file__).resolve().parents[3]
DOUBLE = "{ x[threadIdx.x] *= 2; }"
TEMPLATE = f"template <class T> __global__ void k(T* x) {DOUBLE}"
OPENED = "#define OPEN namespace a {{ namespace b {{\n#define CLOSE }}}}\nOPEN {} CLOSE"
RELU = "__device__ float relu(float a) { return a > 0 ? a : 0; }\n"


def doubles(kernel, dtype="f4"):
    x = bascule.ones(4, dtype)
    kernel[1, 4](x)
    return x.copy_to_host().tolist() == [2] * 4


# --- Names of parameters

ORDER = "{ x[0] = nx; x[1] = ny; }"
RIGHT = f"__global__ void k(int* x, int nx, int ny) {ORDER}\n"
SWAPPED = f"__global__ void k(int* x, int ny, int nx) {ORDER}\n"
RIGHT_DECLARED = "__global__ void k(int* x, int nx, int ny);\n"
KNOWN = {
    "declared without names": "__global__ void k(int*, int, int);\n#define ON 1\n" + RIGHT,
    "an old version in #if 0": "#if 0\n" + SWAPPED + "#endif\n" + RIGHT,
    "the other branch of an #if": "#if DIM == 2\n" + SWAPPED + "#else\n" + RIGHT + "#endif\n",
    "an architecture": "#if __CUDA_ARCH__ >= 1500\n" + SWAPPED + "#else\n" + RIGHT + "#endif\n",
    "an include guard": "#ifndef GUARD\n#define GUARD\n" + RIGHT + "#endif\n",
    "lines of other numbers": "#line 100\n#if 0\n" + SWAPPED + "#endif\n" + RIGHT,
    "a namespace that a macro opens": OPENED.format(RIGHT),
}
UNKNOWN = {
    "branches inside the parameters": "__global__ void k(int* x,\n#if DIM == 2\nint ny, int nx\n#else\nint nx, int ny\n"
    "#endif\n) " + ORDER,
    "one parameter of two branches": "__global__ void k(int* x, int nx, int\n#if DIM == 3\nny\n#else\nother\n#endif\n) "
    + ORDER,
    "a macro's kernel beside one in #if 0": "#if 0\n" + SWAPPED + "#endif\n"
    "#define KERNEL(name) __global__ void name(int* x, int nx, int ny) " + ORDER + "\nKERNEL(k)\n",
    "an overload": SWAPPED.replace("int* x", "float* x") + RIGHT,
    "a specialisation": "template <class T> "
    + SWAPPED.replace("int* x", "T* x")
    + "template <> "
    + RIGHT.replace("k(", "k<int>("),
    "a template in #if 0": "#if 0\ntemplate <class T> " + SWAPPED + "#endif\n" + RIGHT,
    "a dead template beside a live one": "#if 0\ntemplate <class T> "
    + SWAPPED.replace("int* x", "T* x")
    + "#endif\ntemplate <class T> "
    + RIGHT.replace("int* x", "T* x"),
    "declared beside one of a macro's namespace": OPENED.format(SWAPPED) + "\n" + RIGHT_DECLARED + RIGHT,
    "declared, and made by a macro": RIGHT_DECLARED
    + OPENED.format(SWAPPED)
    + "\n#define KERNEL(name) __global__ void name(int* x, int nx, int ny) "
    + ORDER
    + "\nKERNEL(k)\n",
    "a file of another name": '#line 1 "other.cu"\n#if 1\n' + RIGHT + "#endif\n",
    "warnings that are suppressed": "#pragma nv_diag_suppress 1444\n#if 1\n" + RIGHT + "#endif\n",
}


@pytest.mark.parametrize("text", KNOWN.values(), ids=list(KNOWN))
def test_names_are_those_of_the_declaration_that_the_compiler_sees(text):
    x = bascule.zeros(2, "i4")
    module = bascule.compile(text, options={"defines": {"DIM": 3}})
    module.k[1, 1](x, ny=5, nx=3)
    assert x.copy_to_host().tolist() == [3, 5]
    assert bascule.compile(text, options={"defines": {"DIM": 3}}).k.signature.endswith("(int* x, int nx, int ny)")


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=list(UNKNOWN))
def test_where_it_cannot_be_told_names_are_refused_and_places_work(text):
    x = bascule.zeros(2, "i4")
    kernel = bascule.compile(text, options={"defines": {"DIM": 3}}).k
    with pytest.raises(bascule.ArgumentError, match=r"(?s)has no parameter .*arg2.*by position"):
        kernel[1, 1](x, ny=5, nx=3)
    assert x.copy_to_host().tolist() == [0, 0]
    kernel[1, 1](x, 3, 5)
    assert x.copy_to_host().tolist() == [3, 5]


def test_the_compilers_own_warnings_stay_and_the_questions_do_not_show():
    text = "#if 1\n__global__ void k(int* x) { int unused; x[0] = 1; }\n#endif\n"
    with pytest.warns(bascule.CompileWarning) as told:
        bascule.compile(text + "// warned").k.prepare(bascule.zeros(1, "i4"))
    words = " ".join(str(each.message) for each in told)
    assert "unused" in words
    assert "bascule_declared" not in words


def test_warnings_that_are_errors_do_not_meet_the_question():
    text = f"#if 1\n__global__ void k(float* x) {DOUBLE}\n#endif\n"
    assert doubles(bascule.compile(text, options={"extra": ["-Werror=all-warnings"]}).k)


def test_a_macros_template_is_not_taken_for_a_kernel_of_a_macros_namespace():
    text = "#define HEAD template <class T>\n#define ENTRY __global__ void\n"
    text += OPENED.format(f"ENTRY k(double* x) {DOUBLE}")
    text += "\n__device__ int k(int v) { return v; }\nHEAD __global__ void k(T* x) { x[0] = 7; }\n"
    module = bascule.compile(text)
    x = bascule.ones(4, "f8")
    with pytest.raises(bascule.CompileError, match=r'a template, .*name_expressions=\["k<...>"\]'):
        module["k"][1, 4](x)
    module["k<double>"][1, 1](x)
    assert x.copy_to_host().tolist() == [7, 1, 1, 1]
    assert doubles(module["a::b::k"], "f8")


# --- Overloads

PAIR = f"__global__ void k(float* x) {DOUBLE}\n__global__ void k(double* x) {DOUBLE}\n"
OVERLOADS = {
    "an old one in #if 0": f"#if 0\n__global__ void k(long long* x) {DOUBLE}\n#endif\n" + PAIR,
    "one of an option that is off": f"#ifdef WITH_INT\n__global__ void k(int* x) {DOUBLE}\n#endif\n" + PAIR,
    "the same twice": "#if 0\n" + PAIR + "#else\n" + PAIR + "#endif\n",
    "made by a macro": f"#define KERNEL(T) __global__ void k(T* x) {DOUBLE}\nKERNEL(float) KERNEL(double)",
    "one of them made by a macro": f"#define KERNEL(T) __global__ void k(T* x) {DOUBLE}\n"
    f"KERNEL(double)\n__global__ void k(float* x) {DOUBLE}",
    "in a macro's namespace": OPENED.format(PAIR),
    "types of a namespace": f"namespace n {{ using F = float; __global__ void k(F* x) {DOUBLE}\n"
    f"__global__ void k(double* x) {DOUBLE} }}",
}


@pytest.mark.parametrize("text", OVERLOADS.values(), ids=list(OVERLOADS))
def test_overloads_are_those_that_the_compiler_sees(text):
    kernel = bascule.compile(text).k
    for dtype in ("f4", "f8"):
        assert doubles(kernel, dtype), dtype
    with pytest.raises(bascule.ArgumentError):
        kernel[1, 4](bascule.ones(4, "i8"))


def test_a_macros_kernel_is_preferred_to_a_template_as_in_cpp():
    text = f"#define ENTRY __global__ void\n{TEMPLATE.replace('*= 2', '+= 8')}\nENTRY k(float* x) {DOUBLE}"
    kernel = bascule.compile(text).k
    assert doubles(kernel, "f4")
    assert not doubles(kernel, "f8")  # the template's


def test_a_name_that_a_macro_makes_is_not_taken_for_one_of_a_namespace():
    made = f"#define KERNEL(T) __global__ void k(T* x) {DOUBLE}\nKERNEL(float) KERNEL(double)\n"
    kernel = bascule.compile(made + "namespace a { __global__ void k(float* x) {} }").k
    assert doubles(kernel, "f4")
    assert doubles(kernel, "f8")


BESIDE = {
    "own function": (RELU + "__global__ void relu(float* x) { x[0] = relu(x[0] + 1); }", "relu"),
    "extern C": (RELU + 'extern "C" __global__ void relu(float* x) { x[0] = relu(x[0] + 1); }', "relu"),
    "own template": (
        "template <class T> __device__ T relu(T a) { return a; }\n__global__ void relu(float* x) { x[0] = relu(2.f); }",
        "relu",
    ),
    "in a namespace": (
        "namespace ops { " + RELU + "__global__ void relu(float* x) { x[0] = relu(x[0] + 1); } }",
        "ops::relu",
    ),
    "with a view": (RELU + "__global__ void relu(bascule::array_view<float> x) { x[0] = relu(x[0] + 1); }", "relu"),
    "CUDA's max": ("__global__ void max(float* x) { x[0] = 2; }", "max"),
    "CUDA's exp": ("__global__ void exp(float* x) { x[0] = 2; }", "exp"),
    "CUDA's all": ("__global__ void all(float* x) { x[0] = 2; }", "all"),
    "one in #if 0": (
        "#if 0\n__global__ void k(int* x) {}\n#endif\n__global__ void k(float* x) { x[0] = 2; }\n"
        "__device__ void k(double* x) {}",
        "k",
    ),
    "a template kernel": (RELU + "template <class T> __global__ void relu(T* x) { x[0] = relu(x[0] + 1); }", "relu"),
}


@pytest.mark.parametrize(("text", "name"), BESIDE.values(), ids=list(BESIDE))
def test_a_kernel_may_share_its_name_with_functions_of_the_device(text, name):
    x = bascule.ones(1, "f4")
    kernel = bascule.compile(text)[name]
    kernel[1, 1](x=x)
    assert x.item() == 2
    assert kernel.name == name


# --- Kernels made by macros

MADE = {
    "template head": (f"#define TEMPLATE template <class T>\nTEMPLATE __global__ void k(T* x) {DOUBLE}", "k<float>"),
    "head of a define": (f"HEAD __global__ void k(T* x) {DOUBLE}", "k<float>"),
    "explicit instance": (
        f"#define TEMPLATE template <class T>\nTEMPLATE __global__ void k(T* x) {DOUBLE}\n"
        "template __global__ void k<float>(float*);",
        "k<float>",
    ),
    "whole template": (
        f"#define KERNEL(name) template <class T> __global__ void name(T* x) {DOUBLE}\nKERNEL(k)",
        "k<float>",
    ),
    "pasted name": (
        f"#define NAME(x) x##_v2\ntemplate <class T> __global__ void NAME(k)(T* x) {DOUBLE}",
        "k_v2<float>",
    ),
    "namespace": (OPENED.format(TEMPLATE), "a::b::k<float>"),
    "pasted namespace": (f"#define CAT(a, b) a##b\nnamespace CAT(lib, _v1) {{ {TEMPLATE} }}", "lib_v1::k<float>"),
    "named kernel": (f"#define K my_k\n__global__ void K(float* x) {DOUBLE}", "my_k"),
    "all defaults": (f"template <class T = float, int N = 2> __global__ void f(T* x) {DOUBLE}", "f<>"),
    "one default": (f"template <int N, class T = float> __global__ void f(T* x) {DOUBLE}", "f<5>"),
    "an enumerator": (
        f"enum class M {{ A, B }}; template <M m, class T = float> __global__ void f(T* x) {DOUBLE}",
        "f<M::B>",
    ),
}


@pytest.mark.parametrize("named", [True, False], ids=["named first", "asked for later"])
@pytest.mark.parametrize(("text", "expression"), MADE.values(), ids=list(MADE))
def test_a_name_that_the_text_does_not_spell_is_the_compilers(text, expression, named):
    options = {"defines": {"HEAD": "template <class T>"}} if "HEAD" in text else None
    module = bascule.compile(text, options=options, name_expressions=[expression] if named else [])
    kernel = module[expression]
    assert doubles(kernel)
    before = bascule.cache.stats().nvrtc_calls
    assert doubles(module[f"::{expression}"])
    assert bascule.cache.stats().nvrtc_calls == before


def test_a_kernel_in_a_macros_namespace_has_both_names():
    module = bascule.compile(OPENED.format(f"__global__ void k(float* x) {DOUBLE}"))
    assert doubles(module.k)
    assert doubles(module["a::b::k"])


def test_a_template_that_a_macro_makes_is_launched_by_the_name_of_an_instance():
    text = f"#define TEMPLATE template <class T>\nTEMPLATE __global__ void k(T* x) {DOUBLE}"
    with pytest.raises(bascule.CompileError, match=r'a template, which a macro.*name_expressions=\["k<...>"\]'):
        bascule.compile(text).k[1, 4](bascule.ones(4, "f4"))


@pytest.mark.parametrize("names", [["nothere"], ["nothere<int>"], ["k<struct nothing>"]], ids=str)
def test_what_the_compiler_does_not_find_either_is_an_error(names):
    with pytest.raises(bascule.CompileError, match=names[0].split("<")[0]):
        bascule.compile("#define NOTHING\n" + TEMPLATE, name_expressions=names)


def test_two_modules_of_one_text_share_no_variables_of_instances():
    options = bascule.CompileOptions(std="c++20")
    ticket = "(auto* x) { static int next; x[0] = atomicAdd(&next, 1); }"
    text = "__global__ void other(int* x) { x[0] = 1; } __global__ void ticket" + ticket
    for _ in range(4):
        x = bascule.zeros(1, "i4")
        bascule.compile(text, options=options).ticket[1, 1](x)
        assert x.item() == 0


def test_two_instances_of_one_program_with_extern_shared_arrays_get_help():
    text = "template <class T> __global__ void k(T* x) { extern __shared__ T s[]; s[0] = x[0]; x[1] = s[0]; }"
    for dtype in ("f4", "f8"):
        x = bascule.to_device(np.array([3, 0], dtype))
        bascule.compile(text).k[1, 1, None, 8](x)
        assert x.copy_to_host()[1] == 3
    with pytest.raises(bascule.CompileError, match="reinterpret_cast<T"):
        bascule.compile(text, name_expressions=["k<float>", "k<double>"])
    cured = text.replace("extern __shared__ T s[];", "extern __shared__ __align__(16) unsigned char bytes[]; "
                         "T* s = reinterpret_cast<T*>(bytes);")  # fmt: skip
    module = bascule.compile(cured, name_expressions=["k<float>", "k<double>"])
    for dtype in ("f4", "f8"):
        x = bascule.to_device(np.array([3, 0], dtype))
        module.k[1, 1, None, 8](x)
        assert x.copy_to_host()[1] == 3


def test_hundreds_of_kernels_that_are_not_there_cost_a_few_compiles():
    dead = "".join(f"__global__ void dead{i}(float* x) {DOUBLE}\n" for i in range(400))
    text = f"#if 0\n{dead}#endif\n" + PAIR + f"__global__ void other(float* x) {DOUBLE}\n"
    before = bascule.cache.stats().nvrtc_calls
    module = bascule.compile(text)
    assert doubles(module.k, "f8")
    assert doubles(module.other)
    assert bascule.cache.stats().nvrtc_calls <= before + 6
    with pytest.raises(bascule.CompileError, match="dead3"):
        module.dead3[1, 1](bascule.ones(4, "f4"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compare with")
def test_random_texts_have_the_kernels_that_gxx_sees():
    printed_by(TREE / "tests/jit/declarations/compare.py", "--texts", "40", "--seed", "7", timeout=600)


def test_a_template_that_a_macro_makes_is_not_taken_for_a_kernel_of_a_namespace_with_its_name():
    module = bascule.compile(
        "#define OPEN namespace a {\n#define CLOSE }\n#define TEMPLATE template <class T>\n"
        "TEMPLATE __global__ void l(T* x) { x[0] = 1; }\nOPEN __global__ void l(float* x) { x[0] = 2; } CLOSE\n"
    )
    x = bascule.zeros(1, "f4")
    with pytest.raises(bascule.CompileError, match=r"'l' .*is a template, which a macro of the text makes of it"):
        module["l"][1, 1](x)
    module["a::l"][1, 1](x)
    assert x.item() == 2
    module["l<float>"][1, 1](x)
    assert x.item() == 1
