"""Recognises functions of numba-cuda by a digest of their source text.

Numba's `__cuda_array_interface__` is a property written in Python, and reading it takes longer than the rest of a
launch. If the property's code is recognised, a launch reads the same attributes directly instead
(bindings/exchange/numba_arrays). A function is recognised if the digest of its text is in the table and compiling that
text gives the function's code object. If a library, a program or a debugger has replaced it, the property is called.
"""

import ctypes
import hashlib
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any, Literal

# The first 12 digits of the SHA-256 of each function's text. Comments name the releases of numba-cuda that have it.
_KNOWN = {
    "DeviceNDArrayBase.__cuda_array_interface__": {"4dea8d4309f9"},  # 0.21 to 0.30
    "DeviceNDArrayBase.device_ctypes_pointer": {"7f7bc74580f7"},  # 0.21 to 0.30
    "MemoryPointer.device_ctypes_pointer": {"a1e1ff35b092", "1c72a4822c4b"},  # 0.21 to 0.27; 0.28 to 0.30
    "Stream.__int__": {"25f934d1e97d"},  # 0.28 to 0.30
}


def _code_of(text: str, function: FunctionType) -> CodeType | None:
    """Compile the text of a method at its own file and line, and return the method's code object."""
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
    except (OSError, TypeError, ValueError, SyntaxError):  # the text is missing, or is not what was compiled
        return False


def _getter(cls: type, name: str) -> object:
    """Return the getter of a property of the class; None if it is not a property."""
    found = inspect.getattr_static(cls, name, None)
    return found.fget if type(found) is property else None


def known_functions(cls: type) -> tuple[Literal["array", "pointer", "stream"], tuple[Any, ...]] | None:
    """Return the kind of a Numba class and its recognised functions; None for all other classes."""
    described = _getter(cls, "__cuda_array_interface__")
    pointer = _getter(cls, "device_ctypes_pointer")
    if _is_known(described) and _is_known(pointer):
        return "array", (described, pointer)
    if _is_known(pointer):
        # Each known version of this property returns the address as a 64-bit integer if its c_size_t is ctypes' own.
        number = pointer.__globals__.get("c_size_t")  # type: ignore[attr-defined]
        if number is ctypes.c_size_t or "c_size_t" not in pointer.__code__.co_names:  # type: ignore[attr-defined]
            return "pointer", (pointer,)
    handle = inspect.getattr_static(cls, "__int__", None)
    compares = any(inspect.getattr_static(cls, name) is not getattr(object, name) for name in ("__eq__", "__ne__"))
    if _is_known(handle) and not compares:
        return "stream", (handle,)
    return None
