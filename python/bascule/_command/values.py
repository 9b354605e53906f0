"""Parses the kernel arguments of `bascule run`: numbers, .npy files and arrays such as zeros:1024:f4."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bascule import _errors
from bascule._command.parser import UsageError

Array = np.ndarray[Any, Any]

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MOST_DIMENSIONS = 64  # NumPy's


def split_values(texts: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and named values; arrays are in host memory. Raises UsageError, FileError."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for text in texts:
        if found := _NAMED.fullmatch(text):
            name, value = found[1], found[2]
            if name in named:
                raise UsageError(f"argument {name!r} is given twice")
            named[name] = _value(value)
        elif named:
            raise UsageError(f"the argument {text!r} has no name and follows one with a name; put those last")
        else:
            positional.append(_value(text))
    return positional, named


def _value(text: str) -> Any:
    if text in ("null", "nullptr", "None"):
        return None
    maker, colon, rest = text.partition(":")
    if colon and maker in _MAKERS:
        return _make(text, maker, rest.split(":"))
    if text.endswith(".npy"):
        return _load(text)
    return _tuple_or_number(text)


def _tuple_or_number(text: str) -> Any:
    return tuple(_number(part, text) for part in text.split(",")) if "," in text else _number(text, text)


def _number(text: str, argument: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for convert in (lambda: int(text, 0), lambda: int(text), lambda: float(text), lambda: complex(text)):
        try:
            return convert()
        except ValueError:
            continue
    if re.fullmatch(r"[-+]?(0x[0-9a-fA-F]+|[\d.]+(e[-+]?\d+)?)[fFuUlL]+", text):
        raise UsageError(
            f"{text!r} has a suffix of C++; write {text.rstrip('fFuUlL')}, it is converted to the declared type"
        )
    if text and Path(text).exists():
        raise UsageError(f"{argument!r} is not a .npy file; write the array with numpy.save, which adds the .npy")
    raise UsageError(
        f"the kernel argument {argument!r} is neither a number nor a .npy file nor an array such as zeros:1024:f4; "
        "bascule run --help lists the forms"
    )


def _make(text: str, maker: str, fields: list[str]) -> Array:
    make, least, form = _MAKERS[maker]
    shape = _shape(text, fields[0])
    dtype = _dtype(text, fields[1] if len(fields) > 1 else "f4")
    if not least <= len(fields) <= form.count(":"):
        raise UsageError(f"{text!r}: write {form}")
    try:
        with np.errstate(all="ignore"):
            made: Array = make(shape, dtype, *fields[2:])
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{text!r}: {error}; the form is {form}") from None
    return made


def _shape(text: str, field: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(x\d+)*", field) or field.count("x") >= _MOST_DIMENSIONS:
        raise UsageError(f"{text!r}: the shape {field!r} is not a number such as 1024, or numbers such as 32x64")
    return tuple(map(int, field.split("x")))


def _dtype(text: str, field: str) -> np.dtype[Any]:
    fields = [part.split("=") for part in field.split(",")] if "=" in field else None
    try:
        dtype = np.dtype([(name, form) for name, form in fields] if fields else field)
    except Exception:  # NumPy's parser also raises SyntaxError, KeyError, OverflowError
        dtype = None
    if dtype is None or dtype.hasobject or dtype.itemsize == 0:
        raise UsageError(
            f"{text!r}: {field!r} is not a dtype for a device; write f4, f8, i4, u1, c8, bool, or for a structure "
            "x=f4,n=i4"
        )
    return dtype


def _full(shape: tuple[int, ...], dtype: np.dtype[Any], value: str) -> Array:
    element = _tuple_or_number(value)
    if dtype.kind in "iu" and isinstance(element, float):
        raise ValueError(f"{value} is not an integer")
    made = np.zeros(shape, dtype)
    made[...] = element
    return made


def _arange(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.arange(np.prod(shape, dtype=np.int64)).astype(dtype).reshape(shape)


def _random(shape: tuple[int, ...], dtype: np.dtype[Any], seed: str = "0") -> Array:
    if not seed.isdigit():
        raise ValueError(f"the seed {seed!r} is not a number")
    generator = np.random.default_rng(int(seed))
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind == "f":
        return generator.random(shape).astype(dtype)
    if dtype.kind == "c":
        return (generator.random(shape) + 1j * generator.random(shape)).astype(dtype)
    raise TypeError(f"there are no random values of dtype {dtype}")


# Maps a name to its function, its minimum number of fields, and its form; the form's colons give the maximum.
_MAKERS: dict[str, tuple[Callable[..., Any], int, str]] = {
    "zeros": (np.zeros, 1, "zeros:SHAPE:DTYPE"),
    "ones": (np.ones, 1, "ones:SHAPE:DTYPE"),
    "full": (_full, 3, "full:SHAPE:DTYPE:VALUE"),
    "arange": (_arange, 1, "arange:SHAPE:DTYPE"),
    "random": (_random, 1, "random:SHAPE:DTYPE:SEED"),
}


def _load(path: str) -> Array:
    try:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise _errors.MissingFileError(f"there is no file {path}") from None
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy does not document what it raises for a malformed header
        raise _errors.FileError(f"{path} cannot be read as an array that numpy.save wrote: {error}") from None
