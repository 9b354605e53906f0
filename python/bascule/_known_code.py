"""Functions of other libraries whose code Bascule knows to the letter.

Numba's arrays describe themselves by a property that is written in Python. Reading it takes longer than the rest of a
launch. Where its code is known, a launch reads what it would read instead (bindings/exchange/numba_arrays). It is known
by the digest of its text, and only where compiling that text gives the code object that is there: what a library, a
program or a debugger has replaced is not known, and then the property is called as ever.
"""

import ctypes
import hashlib
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any, Literal

# SHA-256 of the text, as far as it tells them apart; the releases of numba-cuda that have it.
_KNOWN = {
    "DeviceNDArrayBase.__cuda_array_interface__": {"4dea8d4309f9"},  # 0.21 to 0.30
    "DeviceNDArrayBase.device_ctypes_pointer": {"7f7bc74580f7"},  # 0.21 to 0.30
    "MemoryPointer.device_ctypes_pointer": {"a1e1ff35b092", "1c72a4822c4b"},  # 0.21 to 0.27; 0.28 to 0.30
    "Stream.__int__": {"25f934d1e97d"},  # 0.28 to 0.30
}


def _code_of(text: str, function: FunctionType) -> CodeType | None:
    """What Python makes of the text of a method, in the place where it stands."""
    first = function.__code__.co_firstlineno
    made = compile("\n" * (first - 2) + "class _:\n" + text, function.__code__.co_filename, "exec", dont_inherit=True)
    body = next((each for each in made.co_consts if isinstance(each, CodeType)), None)
    if body is None:
        return None
    wanted = (each for each in body.co_consts if isinstance(each, CodeType) and each.co_name == function.__name__)
    return next(wanted, None)


def _is_known(function: object) -> bool:
    if not isinstance(function, FunctionType) or function.__closure__ is not None:
        return False
    known = _KNOWN.get(function.__qualname__)
    if known is None:
        return False
    try:
        text = inspect.getsource(function)
        digest = hashlib.sha256(textwrap.dedent(text).encode(), usedforsecurity=False).hexdigest()
        return digest[:12] in known and _code_of(text, function) == function.__code__
    except (OSError, TypeError, ValueError, SyntaxError):  # no text, or another one than was compiled
        return False


def _getter(cls: type, name: str) -> object:
    """The function of a property of the class."""
    found = inspect.getattr_static(cls, name, None)
    return found.fget if type(found) is property else None


def known_functions(cls: type) -> tuple[Literal["array", "pointer", "stream"], tuple[Any, ...]] | None:
    """What a class of Numba is to a launch, and the functions that are known of it; None for all others."""
    described = _getter(cls, "__cuda_array_interface__")
    pointer = _getter(cls, "device_ctypes_pointer")
    if _is_known(described) and _is_known(pointer):
        return "array", (described, pointer)
    if _is_known(pointer):
        # The number that either text makes of an address has 64 bits, and is the address.
        number = pointer.__globals__.get("c_size_t")  # type: ignore[attr-defined]
        if number is ctypes.c_size_t or "c_size_t" not in pointer.__code__.co_names:  # type: ignore[attr-defined]
            return "pointer", (pointer,)
    handle = inspect.getattr_static(cls, "__int__", None)
    compares = any(inspect.getattr_static(cls, name) is not getattr(object, name) for name in ("__eq__", "__ne__"))
    if _is_known(handle) and not compares:
        return "stream", (handle,)
    return None
