"""Compiling the same text again returns the same module only if no variable can have changed in between."""

import pytest

import bascule

COUNTS = {
    "a static": "__global__ void k(int* p) { static int n; *p = ++n; }",
    "a static of a function": "__device__ int next() { static int n; return ++n; }\n"
    "__global__ void k(int* p) { *p = next(); }",
    "a static of a lambda": "__global__ void k(int* p) { auto f = [] { static int n; return ++n; }; *p = f(); }",
    "a macro": "#define SPACE __device__\nSPACE int n;\n__global__ void k(int* p) { *p = ++n; }",
    "pasted words": "#define CAT(a, b) a##b\nCAT(__dev, ice__) int n;\n__global__ void k(int* p) { *p = ++n; }",
    "a line splice": "__dev\\\nice__ int n;\n__global__ void k(int* p) { *p = ++n; }",
    "an attribute": "__attribute__((device)) int n;\n__global__ void k(int* p) { *p = ++n; }",
    "managed": "__managed__ int n;\n__global__ void k(int* p) { *p = ++n; }",
    "a template": "template <class T> __global__ void k(T* p) { static T n; *p = ++n; }",
    "a template's function": "template <class T> __device__ T next() { static T n; return ++n; }\n"
    "__global__ void k(int* p) { *p = next<int>(); }",
}


def counted(text: str, **options: object) -> int:
    given = bascule.CompileOptions(**options) if options else None
    module = bascule.compile(f"// test_remembered\n{text}", options=given)
    p = bascule.zeros(1, "i4")
    module.k[1, 1](p)
    return p.copy_to_host().tolist()[0]


@pytest.mark.parametrize("text", COUNTS.values(), ids=COUNTS.keys())
def test_a_text_with_variables_is_not_remembered(text):
    assert [counted(text) for _ in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("VARIABLE;\n__global__ void k(int* p) { *p = ++n; }", {"VARIABLE": "__device__ int n"}),
        ("SPACE int n;\n__global__ void k(int* p) { *p = ++n; }", {"SPACE": "__device__"}),
    ],
)
def test_variables_of_defines_are_not_remembered(text, defines):
    options = bascule.CompileOptions(defines=defines)
    found = []
    for _ in range(4):
        module = bascule.compile(text, options=options)
        p = bascule.zeros(1, "i4")
        module.k[1, 1](p)
        found.append(p.copy_to_host().tolist()[0])
    assert found == [1, 1, 1, 1]


def test_variables_of_other_default_spaces_are_not_remembered():
    options = bascule.CompileOptions(extra=["-default-device"])
    found = []
    for _ in range(4):
        module = bascule.compile("int n;\n__global__ void k(int* p) { *p = ++n; }", options=options)
        p = bascule.zeros(1, "i4")
        module.k[1, 1](p)
        found.append(p.copy_to_host().tolist()[0])
    assert found == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(int* p) { *p = 1; }",
        "__device__ int twice(int n) { return 2 * n; }\n__global__ void k(int* p) { *p = twice(*p); }",
        "__global__ void k(int* p) { __shared__ int s[32]; s[0] = atomicAdd(p, 1); *p = s[0]; }",
    ],
)
def test_a_text_without_variables_is_remembered(text):
    text = f"// remembered\n{text}"
    modules = [bascule.compile(text) for _ in range(3)]
    assert modules[1] is modules[2]
