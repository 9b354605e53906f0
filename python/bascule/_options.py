"""Makes CompileOptions of a dict or of NVRTC's flags, and errors for keywords of other libraries."""

from collections.abc import Iterator
from typing import Any

from bascule import _bascule, _errors

# Maps NVRTC's flags to the fields that they set and the kinds of their values: switch, number, text, list, dict.
_FLAGS = _bascule._flags_of_options()

# Keywords of CuPy's RawKernel and RawModule, PyCUDA's SourceModule, torch.cuda._compile_kernel and cuda.core's Program.
_ELSEWHERE = {
    "backend nvcc": "leave it out: NVRTC always compiles",
    "jitify": "leave it out: headers of the C++ standard library are found without it",
    "translate_cucomplex": "leave it out: #include <cuComplex.h> or <cuda/std/complex>",
    "enable_cooperative_groups": "launch with bascule.LaunchConfig(grid, block, cooperative=True) instead",
    "code kernel_source": "the text is the first argument: bascule.compile(text)",
    "name kernel_name": "compile the text, then take the kernel: bascule.compile(text).NAME",
    "path": "give the file by name: bascule.compile(file=...)",
    "keep": "leave it out; kernel.ptx and kernel.cubin are what was made",
    "no_extern_c": 'leave it out: nothing is wrapped in extern "C"',
    "cache_dir": "set BASCULE_CACHE_DIR in the environment",
    "arch compute_capability": 'bascule.compile(text, options=bascule.CompileOptions(arch="sm_90"))',
    "include_dirs cuda_include_dirs": "bascule.compile(text, options=bascule.CompileOptions(include_paths=[...]))",
    "nvcc_options": "give the flags as a list: bascule.compile(text, options=[...])",
    "code_type": "leave it out: the text is CUDA C++",
    "target_type": "leave it out: the image is what the device takes",
}


def to_options(given: Any) -> _bascule.CompileOptions:
    """Return CompileOptions for a dict or a list that was passed as `options`."""
    if isinstance(given, dict):
        return _bascule.CompileOptions(**{str(name): value for name, value in given.items()})
    if isinstance(given, (list, tuple)):
        return _bascule.CompileOptions(**fields_of(list(given)))
    hint = ""
    if isinstance(given, str):
        is_kernel = given.isidentifier()  # CuPy's RawKernel(text, name)
        hint = f" {given!r}: a kernel is taken from the module, bascule.compile(text)" if is_kernel else ""
        hint += f".{given}" if is_kernel else f": write options=[{given!r}]"
    raise _errors.ArgumentTypeError(
        "options takes a bascule.CompileOptions, a dict of its fields, or a list of NVRTC flags, "
        f"got {type(given).__name__}{hint}"
    )


def unexpected_keyword(name: str) -> _errors.ArgumentTypeError:
    """Return the error for a keyword that `bascule.compile` does not have."""
    elsewhere = [hint for names, hint in _ELSEWHERE.items() if name in names.split()]
    if elsewhere:
        hint = elsewhere[0]
    elif name in dir(_bascule.CompileOptions) and not name.startswith("_"):
        hint = f"it is one of the options: bascule.compile(text, options=bascule.CompileOptions({name}=...))"
    else:
        hint = "it takes source, file and options"
    return _errors.ArgumentTypeError(f"bascule.compile has no parameter {name!r}: {hint}")


def fields_of(flags: list[Any]) -> dict[str, Any]:
    """Return the fields of CompileOptions that NVRTC's flags set."""
    for i, flag in enumerate(flags):
        if not isinstance(flag, str):
            raise _errors.ArgumentTypeError(
                f"options[{i}] is {flag!r} ({type(flag).__name__}); NVRTC's flags are str, such as '-std=c++20'"
            )
    fields: dict[str, Any] = {}
    rest = iter(flags)
    for flag in rest:
        name, value = _split(flag)
        field, kind = _FLAGS.get(name, ("extra", "list"))
        if field == "extra":
            fields.setdefault("extra", []).append(flag)
        elif kind == "switch":
            fields[field] = value != "false"
        else:
            _set(fields, field, kind, name, _value_of(name, value, rest))
    return fields


def _split(flag: str) -> tuple[str, str | None]:
    """Split a flag into name and value: -DN=4, `-D N=4` and --define-macro=N=4 have the value N=4."""
    if flag[:2] in ("-D", "-I") and flag not in _FLAGS:
        return flag[:2], flag[2:].removeprefix("=").lstrip()
    name, equals, value = flag.partition("=")
    return name, value if equals else None


def _value_of(name: str, value: str | None, rest: Iterator[str]) -> str:
    """Return the value of a flag, which may be the next element of the list."""
    following = next(rest, None) if value is None else value
    if following is None:
        raise _errors.ArgumentValueError(f"options ends with {name!r}, which takes a value")
    return following


def _set(fields: dict[str, Any], field: str, kind: str, flag: str, value: str) -> None:
    if kind == "dict":
        macro, equals, text = value.partition("=")
        # -DNAME= defines an empty macro. A blank keeps NVRTC from defining it as 1, as for -DNAME.
        fields.setdefault(field, {})[macro] = (text or " ") if equals else None
    elif kind == "list":
        fields.setdefault(field, []).append(value)
    elif kind == "number":
        if not value.isdigit():
            what = field.removeprefix("max_")
            raise _errors.ArgumentValueError(f"{flag} takes a number of {what}, got {value!r}")
        fields[field] = int(value)
    else:
        fields[field] = value
