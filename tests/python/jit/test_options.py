"""CompileOptions: values that can be read, pasted and hashed; invalid ones are refused when they are set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bascule


def value_of(expression: str, **options: object) -> float:
    module = bascule.compile(
        f"__global__ void k(double* x) {{ x[0] = ({expression}); }}", options=bascule.CompileOptions(**options)
    )
    x = bascule.to_device(np.full(1, np.nan))
    module.k[1, 1](x)
    return float(x.copy_to_host()[0])


def test_options_can_be_read_pasted_compared_and_hashed():
    options = bascule.CompileOptions(
        std="c++20",
        defines={"N": 4, "NAME": "x + 1", "FLAG": None},
        include_paths=["/inc", Path("/other")],
        headers={"a.h": "#define A 'q'\n"},
        debug=False,
        fast_math=True,
        max_registers=64,
        arch="sm_90a",
        extra=["--fmad=false"],
    )
    pasted = eval(repr(options), {"bascule": bascule})
    assert pasted == options
    assert hash(pasted) == hash(options)
    assert {options: 1}[pasted] == 1
    assert options != bascule.CompileOptions()
    assert options != "c++20"
    assert repr(bascule.CompileOptions()) == "bascule.CompileOptions()"
    assert options.std == "c++20"
    assert options.defines == {"N": "4", "NAME": "x + 1", "FLAG": None}
    assert options.include_paths == ("/inc", "/other")
    assert options.headers == {"a.h": "#define A 'q'\n"}
    assert (options.lineinfo, options.debug, options.fast_math) == (False, False, True)
    assert (options.max_registers, options.arch, options.extra) == (64, "sm_90a", ("--fmad=false",))
    with pytest.raises(AttributeError):
        options.std = "c++17"


def test_defines_arrive_as_the_preprocessor_reads_them():
    assert value_of("N", defines={"N": 4}) == 4
    assert value_of("N", defines={"N": np.int64(5)}) == 5
    assert value_of("N", defines={"N": "2.5f * 2"}) == 5
    assert value_of("N + 10", defines={"N": True}) == 11
    assert value_of("N + 10", defines={"N": False}) == 10
    assert value_of("N + 10", defines={"N": None}) == 11
    assert value_of("SQUARE(3)", defines={"SQUARE(x)": "((x) * (x))"}) == 9


def test_a_relative_include_path_stays_the_same_after_a_chdir(tmp_path, monkeypatch):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "value.h").write_text("#define VALUE 77\n")
    monkeypatch.chdir(tmp_path)
    options = bascule.CompileOptions(include_paths=["inc"])
    assert options.include_paths == (str(tmp_path / "inc"),)
    monkeypatch.chdir("/")
    module = bascule.compile('#include "value.h"\n__global__ void k(int* x) { x[0] = VALUE; }', options=options)
    x = bascule.to_device(np.zeros(1, "i4"))
    module.k[1, 1](x)
    assert x.copy_to_host()[0] == 77


def test_c17_c20_and_what_each_lacks():
    assert value_of("__cplusplus", std="c++17") == 201703
    assert value_of("__cplusplus", std="c++20") == 202002


REFUSED = [
    ({"fastmath": True}, TypeError, ["fastmath", "Did you mean 'fast_math'"]),
    ({"nothing_like_it": 1}, TypeError, ["nothing_like_it", "max_registers"]),
    ({"std": "c++98"}, ValueError, ["std", "c++17", "c++20"]),
    ({"std": 17}, TypeError, ["std", "17"]),
    ({"extra": "-G"}, TypeError, ["extra", "list", "'-G'"]),
    ({"extra": [3]}, TypeError, ["extra", "3"]),
    ({"extra": ["-G"]}, ValueError, ["extra", "-G", "`debug`"]),
    ({"extra": ["-arch=sm_90"]}, ValueError, ["extra", "`arch`"]),
    ({"extra": ["--expt-relaxed-constexpr"]}, ValueError, ["extra", "nvcc's", "-default-device"]),
    ({"extra": ["--extended-lambda"]}, ValueError, ["extra", "without an option"]),
    ({"extra": ["--std=c++20"]}, ValueError, ["extra", "`std`"]),
    ({"extra": ["-DN=3"]}, ValueError, ["extra", "`defines`"]),
    ({"extra": ["-I", "/inc"]}, ValueError, ["extra", "`include_paths`"]),
    ({"extra": ["--fmad false"]}, ValueError, ["extra", "--name=value"]),
    ({"defines": {"N": 1.5}}, TypeError, ["defines", "1.5f"]),
    ({"defines": {3: 1}}, TypeError, ["defines", "3"]),
    ({"defines": ["N"]}, TypeError, ["defines", "dict"]),
    ({"defines": {"A B": 1}}, ValueError, ["defines", "A B"]),
    ({"include_paths": "inc"}, TypeError, ["include_paths", "list"]),
    ({"include_paths": [3]}, TypeError, ["include_paths", "3"]),
    ({"include_paths": ["~/no such directory"]}, ValueError, ["include_paths", "os.path.expanduser"]),
    ({"headers": {"a.h": None}}, TypeError, ["headers", "None"]),
    ({"lineinfo": 1}, TypeError, ["lineinfo", "True or False"]),
    ({"debug": "yes"}, TypeError, ["debug", "'yes'"]),
    ({"max_registers": 0}, ValueError, ["max_registers", "255"]),
    ({"max_registers": 2**70}, ValueError, ["max_registers"]),
    ({"max_registers": "32"}, TypeError, ["max_registers", "'32'"]),
    ({"arch": "sm80"}, ValueError, ["arch", "sm_90"]),
    ({"arch": 80}, TypeError, ["arch", "80"]),
]


@pytest.mark.parametrize(("options", "kind", "parts"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_option_that_cannot_be_is_refused_where_it_is_given(options, kind, parts):
    with pytest.raises(kind) as caught:
        bascule.CompileOptions(**options)
    assert isinstance(caught.value, bascule.ArgumentError)
    for part in parts:
        assert part in str(caught.value)


def test_options_are_given_by_name():
    with pytest.raises(TypeError, match="keyword arguments only"):
        bascule.CompileOptions("c++20")


def test_a_launch_config_hashes_as_it_compares():
    one, same, other = (bascule.LaunchConfig(g, 32) for g in (4, (4, 1), 5))
    assert one == same
    assert len({one, same, other}) == 2


def test_what_nvrtc_alone_knows_passes_through_extra():
    assert value_of("g(3)", extra=["-default-device"], defines={"g(x)": "((x) + 1)"}) == 4
    text = "int plain(int x) { return x + 2; }\n__global__ void k(int* x) { x[0] = plain(1); }"
    module = bascule.compile(text, options=bascule.CompileOptions(extra=["-default-device"]))
    x = bascule.to_device(np.zeros(1, "i4"))
    module.k[1, 1](x)
    assert x.copy_to_host()[0] == 3


def test_signatures_and_names_in_the_image_of_a_named_architecture_need_no_such_device():
    text = "namespace ns { template <class T> __global__ void fill(T* p, T value) { *p = value; } }"
    options = bascule.CompileOptions(arch="sm_90")
    module = bascule.compile(text, options=options, name_expressions=["ns::fill<float>"])
    kernel = module["ns::fill<float>"]
    assert kernel.signature == "void ns::fill<float>(float* p, float value)"
    assert kernel.parameters == [("p", "float*"), ("value", "float")]
    assert f".entry {kernel.lowered_name}(" in kernel.ptx
    assert kernel.lowered_name.encode() in kernel.cubin
    with pytest.raises(bascule.ArgumentError, match="fill"):
        _ = module["ns::fill"].lowered_name  # the name depends on the instance
