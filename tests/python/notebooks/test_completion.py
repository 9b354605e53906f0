"""Completion, documentation and signatures for editors and IPython, without a compile."""

from __future__ import annotations

import inspect
import pydoc

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import bascule
from bascule._display.source_text import find_definition

SOURCE = r"""
#define BRACE {
namespace ns {
// Scales in place.
//
//  n : elements
__global__ void scale(float* p, float f, int n) {
    char brace = '}';  // }
    if (threadIdx.x < n && brace) p[threadIdx.x] *= f;
}
}

/* Fills with
 * one value.
 */
template <class T, int N>
__global__ void fill(T* p, T value) { for (int i = 0; i < N; ++i) p[i] = value; }

__global__ void twice(float* p);
__global__ void same(int* p) { p[0] = 1; }
namespace other { __global__ void same(float* p) { p[0] = 1; } __global__ void several(int n) {} }
namespace another { __global__ void several(int n) {} }
"""

NEVER_COMPILED = "template <class T> __global__ void {}(T* p) {{ p[0] = T(7); }}"


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(SOURCE.replace("__global__ void twice(float* p);\n", ""))


@pytest.fixture
def shell(module):
    shell = InteractiveShell()  # a separate one, so that nothing of it stays in the process
    shell.user_ns["module"] = module
    yield shell
    shell.history_manager.end_session()


def module_names(shell) -> list[str]:
    return type(shell.user_ns["module"]).kernels.__get__(shell.user_ns["module"])


def completions(shell, text: str) -> set[str]:
    with provisionalcompleter():
        return {each.text.lstrip(".").strip("\"']") for each in shell.Completer.completions(text, len(text))}


# --- Completion


def test_dir_has_what_attributes_find(module):
    names = set(dir(module))
    assert {"scale", "fill", "same", "kernels", "instantiate", "source"} <= names
    assert "several" not in names  # in two namespaces, so only a qualified name is unique
    assert not [name for name in names if not name.isidentifier()]
    assert isinstance(module.scale, bascule.Kernel)


@pytest.mark.parametrize("use_jedi", [True, False])
def test_attributes_are_completed(shell, use_jedi):
    shell.Completer.use_jedi = use_jedi
    assert completions(shell, "module.sc") == {"scale"}
    assert {"instantiate", "scale", "fill"} <= completions(shell, "module.")


@pytest.mark.parametrize("use_jedi", [True, False])
def test_names_in_brackets_are_completed(shell, use_jedi):
    shell.Completer.use_jedi = use_jedi
    assert completions(shell, 'module["') == set(module_names(shell))
    assert completions(shell, 'module["ns') == {"ns::scale"}


def test_every_key_that_is_completed_is_a_kernel(module):
    for name in module._ipython_key_completions_():
        assert module[name].name == name


def test_a_launch_rule_has_its_kernels_methods():
    rule = bascule.kernel(NEVER_COMPILED.format("r"))(lambda p: 1)
    assert {"instantiate", "explain", "forall", "kernel"} <= set(dir(rule))


def test_nothing_is_compiled_to_complete_or_to_document(shell):
    text = NEVER_COMPILED.format("asked_for_only")
    module = bascule.compile(text)
    rule = bascule.kernel(text, name="asked_for_only")(lambda p: 1)
    shell.user_ns.update(module=module, rule=rule, kernel=module.asked_for_only)
    before = bascule.cache.stats().nvrtc_calls
    for typed in ("module.", 'module["', "rule.", "kernel.", "kernel["):
        completions(shell, typed)
    for thing in (module, rule, module.asked_for_only, module.asked_for_only[1, 1]):
        dir(thing), pydoc.render_doc(thing), inspect.getdoc(thing)
    for thing in (rule, module.asked_for_only, module.asked_for_only[1, 1]):
        inspect.signature(thing)
    assert not hasattr(module, "_repr_png_")
    assert not hasattr(module, "_ipython_display_")
    assert bascule.cache.stats().nvrtc_calls == before


# --- Signatures


def signature_text(thing: object) -> str:
    return str(inspect.signature(thing))


def test_a_kernels_signature_has_the_cpp_types(module):
    expected = "(p: 'float*', f: 'float', n: 'int') -> None"
    assert signature_text(module.scale) == expected
    assert signature_text(module.scale[1, 32]) == expected
    assert signature_text(module.scale.forall(10)) == expected


def test_a_templates_signature_is_as_the_text_has_it(module):
    assert signature_text(module.fill) == "(p: 'T*', value: 'T') -> None"
    assert signature_text(module.fill.instantiate("int", 2).prepare()) == "(p: 'int*', value: 'int') -> None"


def test_a_bound_launch_takes_nothing_more(module):
    assert signature_text(module.scale[1, 1].bind(bascule.zeros(1, "f4"), 2, 1)) == "() -> None"


def test_a_signature_binds_as_a_launch_does(module):
    bound = inspect.signature(module.scale).bind(1, n=3, f=2)
    assert bound.args == (1, 2, 3)
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        inspect.signature(module.scale).bind(1, 2)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("int in, float* out", "(in: 'int', /, out: 'float*') -> None"),
        ("float*, int n", "(arg1: 'float*', n: 'int') -> None"),
        ("", "() -> None"),
    ],
)
def test_names_that_python_cannot_write_are_positional(declared, expected):
    module = bascule.compile(f"__global__ void k({declared}) {{}}")
    assert signature_text(module.k) == expected


def test_a_parameter_pack_takes_any_number():
    module = bascule.compile("template <class... T> __global__ void k(int n, T*... arrays) {}")
    signature = inspect.signature(module.k)
    assert signature.parameters["arrays"].kind is inspect.Parameter.VAR_POSITIONAL
    signature.bind(1, 2, 3, 4)


def test_overloads_have_no_one_signature():
    module = bascule.compile("__global__ void k(float* p) {}\n__global__ void k(int* p, int n) {}")
    assert signature_text(module.k) == "(*arguments) -> None"


def test_a_launch_rule_keeps_its_defaults():
    @bascule.kernel("__global__ void add(float* p, float by, int n) { if (threadIdx.x < n) p[threadIdx.x] += by; }")
    def add(p, by=1, n=4):
        """Adds."""
        return n

    expected = "(p: 'float*', by: 'float' = 1, n: 'int' = 4) -> None"
    assert signature_text(add) == expected
    add(bascule.zeros(4, "f4"))
    assert signature_text(add) == expected
    assert add.__doc__ == "Adds."


def test_classes_keep_their_own_documentation():
    assert bascule.Kernel.__doc__.startswith("One __global__ function")
    assert bascule.LaunchRule.__doc__.startswith("A kernel with a launch rule")
    assert list(inspect.signature(bascule.LaunchRule).parameters)[:2] == ["rule", "source"]
    for thing in (bascule.Kernel, bascule.LaunchRule):
        assert thing.__doc__.split("\n")[0] in pydoc.render_doc(thing)


# --- Documentation


def test_a_kernels_documentation_has_its_comment_and_its_text(module):
    text = module.scale.__doc__
    assert text.startswith("void ns::scale(float* p, float f, int n)\n\nScales in place.\n\n n : elements\n")
    assert "f : float" in text
    assert "p[threadIdx.x] *= f;\n    }" in text
    assert "namespace" not in text
    assert "test_completion.py:" in text or "<string at" in text


def test_ipython_shows_signature_and_text(shell):
    info = shell.object_inspect("module.scale")
    assert info["definition"].startswith("module.scale(p: 'float*', f: 'float', n: 'int')")
    assert "Scales in place." in info["docstring"]
    assert "if (threadIdx.x < n && brace)" in info["docstring"]


def test_help_shows_the_kernel(module):
    text = pydoc.render_doc(module.fill)
    assert "Fills with" in text
    assert "for (int i = 0; i < N; ++i)" in text


def test_a_launch_rule_without_documentation_has_its_kernels():
    rule = bascule.kernel("// Does nothing.\n__global__ void nothing(int n) {}")(lambda n: n)
    assert "Does nothing." in rule.__doc__


DEFINITIONS = [
    # text, name, line, the code, the comment
    ("__global__ void k() {}", "k", 1, "__global__ void k() {}", ""),
    ("// a\n\n// b\n__global__ void k() {}", "k", 4, "__global__ void k() {}", "b"),
    ("int n; // of n\n__global__ void k() {}", "k", 2, "__global__ void k() {}", ""),
    ("/// a\n/// b\n__global__ void k() {}", "k", 3, "__global__ void k() {}", "a\nb"),
    ("/** a\n *  b\n **/\n__global__ void k() {}", "k", 4, "__global__ void k() {}", "a\nb"),
    ("#define A {\n// c\n__global__ void k() {}", "k", 3, "__global__ void k() {}", "c"),
    ("__global__ void a() {} __global__ void k() {}", "a", 1, "__global__ void a() {}", ""),
    ("__global__ void a() {} __global__ void k() {}", "k", 1, "__global__ void k() {}", ""),
    ("__global__ void k() { auto s = R\"x(}{})x\"; char c = '}'; int n = 1'000; }", "k", 1, ..., ""),
    ('extern "C" __global__ void k() { if (1) { } // }\n }', "k", 1, ..., ""),
    ("template <int N>\n__global__\nvoid k() {}", "k", 3, ..., ""),
    ("namespace n {\n  __global__ void k() {\n    f();\n  }\n}", "n::k", 2, "__global__ void k() {\n  f();\n}", ""),
    ("__global__ void k(", "k", 1, ..., ""),
]


@pytest.mark.parametrize(("text", "name", "line", "code", "comment"), DEFINITIONS)
def test_definitions_are_found(text, name, line, code, comment):
    found = find_definition(text, name, line)
    assert found is not None
    assert found.code == (text if code is ... else code)
    assert found.comment == comment


def test_what_a_macro_makes_has_no_text():
    assert find_definition("KERNEL(k)", "k", 1) is None
    module = bascule.compile("#define KERNEL(name) __global__ void name(int n) {}\nKERNEL(made)\n")
    assert module.made.__doc__.startswith("void made(int")
    assert "made" in dir(module)


def test_a_kernel_of_another_launch_is_documented_too(module):
    module.scale[1, 4](bascule.to_device(np.ones(4, "f4")), 2, 4)
    assert "Scales in place." in module.scale.__doc__
