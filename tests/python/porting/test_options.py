"""Options, names and keywords from existing programs are accepted, or the error says what to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bascule

TEXT = "__global__ void k(int* out) { out[0] = N; }"


def result_of(options: object) -> int:
    out = bascule.to_device(np.zeros(1, "i4"))
    bascule.compile(TEXT, options=options).k[1, 1](out)
    return int(out.copy_to_host()[0])


@pytest.mark.parametrize(
    "options",
    [
        bascule.CompileOptions(defines={"N": 4}),
        {"defines": {"N": 4}},
        ["-DN=4"],
        ("-D", "N=4"),
        ["--define-macro=N=4", "-std=c++20"],
        ["-DM=4", "-DN=M"],
    ],
)
def test_options_are_fields_a_dict_or_flags(options: object) -> None:
    assert result_of(options) == 4


def test_flags_that_are_fields_set_them_and_the_others_are_passed_on(tmp_path: Path) -> None:
    from bascule._options import to_options

    flags = ["-std=c++20", "-DA", "-DB=", "-DC=a=b", f"-I{tmp_path}", "--use_fast_math", "-maxrregcount=32"]
    flags += ["-lineinfo", "--gpu-architecture=sm_90", "--fmad=false", "-default-device"]
    assert to_options(flags) == bascule.CompileOptions(
        std="c++20",
        defines={"A": None, "B": " ", "C": "a=b"},
        include_paths=[tmp_path],
        fast_math=True,
        max_registers=32,
        lineinfo=True,
        arch="sm_90",
        extra=["--fmad=false", "-default-device"],
    )


def test_a_macro_that_is_defined_as_nothing_is_nothing() -> None:
    text = "__global__ void k(int* out) { out[0] = 3 EMPTY; }"
    out = bascule.to_device(np.zeros(1, "i4"))
    bascule.compile(text, options=["-DEMPTY="]).k[1, 1](out)
    assert out.copy_to_host()[0] == 3


def test_a_dict_that_changes_compiles_again() -> None:
    options = {"defines": {"N": 1}}
    assert [result_of(options), result_of(options)] == [1, 1]
    options["defines"]["N"] = 2
    assert result_of(options) == 2


def test_a_decorator_takes_flags_too() -> None:
    @bascule.kernel(TEXT, options=["-DN=7"])
    def k(out):
        return 1

    out = bascule.to_device(np.zeros(1, "i4"))
    k(out)
    assert out.copy_to_host()[0] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-DN=4", r"a list of NVRTC flags, got str: write options=\['-DN=4'\]"),
        ([3], r"options\[0\] is 3 \(int\); NVRTC's flags are str"),
        (["-D"], "options ends with '-D', which takes a value"),
        (["-maxrregcount=many"], "takes a number of registers, got 'many'"),
        (["-std=c++98"], "c[+][+]17"),
        ({"define": {"N": 4}}, "Did you mean 'defines'"),
        (3.5, "got float"),
    ],
)
def test_options_of_another_kind_are_an_error_that_says_what_they_are(options: object, message: str) -> None:
    with pytest.raises(bascule.ArgumentError, match=message):
        bascule.compile(TEXT, options=options)


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("backend", "NVRTC always compiles"),
        ("enable_cooperative_groups", "cooperative=True"),
        ("include_dirs", "include_paths"),
        ("std", r"options=bascule.CompileOptions\(std=\.\.\.\)"),
        ("whatever", "it takes source, file and options"),
    ],
)
def test_keywords_of_other_libraries_get_a_hint(keyword: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"bascule.compile has no parameter '{keyword}'.*{hint}"):
        bascule.compile(TEXT, **{keyword: 1})


def test_the_name_of_a_file_is_not_a_text() -> None:
    with pytest.raises(
        ValueError, match=r"'kernels\.cu' is the name of a file: bascule\.compile\(file='kernels\.cu'\)"
    ):
        bascule.compile("kernels.cu")


def test_a_name_with_template_arguments_is_an_instance() -> None:
    module = bascule.compile(
        "namespace ns { template <class T, int N> __global__ void k(T* out) { out[0] = T(N) / 2; } }"
    )
    out = bascule.to_device(np.zeros(1, "f4"))
    module["ns::k<float, 3>"][1, 1](out)
    assert out.copy_to_host()[0] == 1.5
    assert module["k<double, 3>"].signature == module["ns::k"].instantiate("double", 3).signature
    with pytest.raises(bascule.CompileError, match="has no kernel 'q'"):
        module["q<float>"]


TEXT_OF_ONE = "__global__ void k(int* out) { out[0] = 1; }"
STRINGS = {
    "defines": lambda text: {"A": text},
    "include_paths": lambda text: [f"/tmp/{text}"],
    "headers": lambda text: {f"{text}.h": ""},
    "extra": lambda text: [f"-w{text}"],
    "keep_sources": lambda text: f"/tmp/{text}",
    "std": lambda text: f"c++17{text}",
    "arch": lambda text: f"sm_90{text}",
}


@pytest.mark.parametrize("field", STRINGS)
def test_a_nul_in_an_option_is_an_error_that_names_it(field: str) -> None:
    """NVRTC takes C strings: "1\\0 + 2" would be 1."""
    with pytest.raises(bascule.ArgumentValueError, match=f"{field}.*NUL|the option `{field}` is .*must be"):
        bascule.compile(TEXT_OF_ONE, options={field: STRINGS[field]("1\0 + 2")})


@pytest.mark.parametrize("field", STRINGS)
def test_half_a_character_in_an_option_is_an_error_of_bascule(field: str) -> None:
    with pytest.raises(bascule.ArgumentValueError, match=r"U\+D800 in '.*\\ud800.*' is half of a character"):
        bascule.compile(TEXT_OF_ONE, options={field: STRINGS[field]("\ud800")})


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
def test_names_of_files_and_instances_too(bad: str) -> None:
    for call in (
        lambda: bascule.compile(file=f"/tmp/{bad}.cu"),
        lambda: bascule.load_module(f"/tmp/{bad}.ptx"),
        lambda: bascule.link([f"/tmp/{bad}.cu"]),
        lambda: bascule.compile(TEXT_OF_ONE, name_expressions=[f"k{bad}"]),
    ):
        with pytest.raises(bascule.ArgumentValueError, match=r"NUL character|half of a character"):
            call()


@pytest.mark.parametrize("options", [["-std=c++11"], ["--std", "c++14"], {"std": "c++14"}, ["-std=c++14", "-D N=4"]])
def test_an_older_standard_is_compiled_as_the_oldest_that_there_is(options: object) -> None:
    text = "#ifndef N\n#define N 4\n#endif\n" + TEXT
    out = bascule.zeros(1, "i4")
    bascule.compile(text, options=options).k[1, 1](out)
    assert out.item() == 4


def test_a_macro_and_its_flag_may_be_one_item() -> None:
    assert result_of(["-D N=4"]) == 4
