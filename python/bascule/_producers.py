"""Finds the streams of libraries whose arrays do not name one."""

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from bascule import _bascule
from bascule._errors import ArgumentTypeError, ArgumentValueError, UnorderedProducerWarning, warn

# A function that takes an array and its device number, and returns an object that names a stream, or None.
_Ask = Callable[[Any, int], Any]


# Maps the top-level package of a type or of one of its bases to how its arrays are ordered. JAX orders by DLPack: it
# makes the reading stream wait for the array.
_KNOWN: dict[str, tuple[str, _Ask | None]] = {
    "torch": ("library", lambda _, device: sys.modules["torch"].cuda.current_stream(device).cuda_stream),
    "warp": ("library", lambda _, device: sys.modules["warp"].get_stream(f"cuda:{device}").cuda_stream),
    "jax": ("dlpack", None),
    "jaxlib": ("dlpack", None),
    "bascule": ("library", lambda exported, _: exported.array.stream),
}

# Module, name, and a function that returns True if the library's current stream in this thread is being captured.
_CAPTURING: list[tuple[str, str, Callable[[Any], bool]]] = [
    (
        "torch",
        "PyTorch",
        lambda torch: torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing(),
    ),
    ("cupy", "CuPy", lambda cupy: cupy.cuda.get_current_stream().is_capturing()),
]

_registered: weakref.WeakKeyDictionary[type, tuple[str, _Ask | None]] = weakref.WeakKeyDictionary()
_warned: weakref.WeakSet[type] = weakref.WeakSet()
_warning = threading.Lock()  # protects _warned; released before a warning is issued, which may run any code


@_bascule._public
def register_producer(cls: type, *, stream_of: Any) -> None:
    """Register the stream of arrays that name no stream themselves.

    From version 3 of `__cuda_array_interface__` on, an array names its stream, or None if there is nothing to wait for.
    Versions 0 to 2 have no stream: if work of the library is still pending, a kernel that does not wait for it reads
    unfinished data. Bascule knows the streams of

    PyTorch : the array's stream is `torch.cuda.current_stream()` of its device when the array is passed (or the stream
        that PyTorch's DLPack exchange table names, if there is one). The launch waits for it, and later work on it
        waits for the launch. You must order work on other streams of PyTorch, as inside PyTorch:
        `torch.cuda.current_stream().wait_stream(side)`.
    Warp : the same with `warp.get_stream()` of the array's device.
    JAX : has no current stream. `array.__dlpack__(stream=...)` makes the launch's stream wait until the array is
        ready, and keeps its memory. Nothing waits for the launch: JAX's arrays never change, and a kernel that writes
        refuses them because they are read-only.
    `DeviceArray.export(version=...)` : the stream that the array is bound to.

    Arrays of all other types are used without waiting, with one `UnorderedProducerWarning` per type. To fix that, do
    one of these:

    - synchronise the library's stream before the launch, or launch on it: `kernel[grid, block, stream]`;
    - for one launch, name it: `kernel[grid, block].options(streams={"x": stream})(x)`;
    - register the type here, once.

    `bascule.config.stream_of = "spec"` (or BASCULE_STREAM_OF=spec) turns off all of this, and the warning.

    Parameters
    ----------
    cls : type
        The type of the arrays; subclasses are included.
    stream_of : callable, "dlpack" or "spec"
        A function that takes the array and returns its stream: an integer handle, an object that names a stream, or
        None if there is nothing to wait for. The launching thread calls it before anything is enqueued. "dlpack": the
        array's `__dlpack__` makes the launch stream wait. "spec": there is nothing to wait for, and no warning.

    >>> import bascule
    >>> class Image:
    ...     stream = bascule.stream()
    >>> bascule.register_producer(Image, stream_of=lambda image: image.stream)
    """
    if not isinstance(cls, type):
        raise ArgumentTypeError(f"`cls` must be the type of the arrays, got {cls!r}: pass type(array).")
    if stream_of in ("dlpack", "spec"):
        _registered[cls] = (stream_of, None)
    elif callable(stream_of):
        _registered[cls] = ("registered", lambda array, _device: stream_of(array))
    else:
        raise ArgumentTypeError(
            f'`stream_of` must be a function of the array that returns its stream, or "dlpack" or "spec"; '
            f"got {stream_of!r}."
        )
    _bascule._forget_producers()


register_producer.__module__ = "bascule"


def policy_of(cls: type) -> tuple[str, _Ask | None]:
    """Return how arrays of a type without streams are ordered. The extension module calls this once per type."""
    for base in cls.__mro__:
        if base in _registered:
            return _registered[base]
    for base in cls.__mro__:
        library = str(getattr(base, "__module__", "")).partition(".")[0]
        if library in _KNOWN:
            return _KNOWN[library]
    with _warning:
        is_first = cls not in _warned
        _warned.add(cls)
    if is_first:
        try:
            warn(
                f"arrays of type {cls.__module__}.{cls.__qualname__} name no stream (their __cuda_array_interface__ is "
                "older than version 3), so a launch does not wait for pending work on them. Register their stream: "
                f"bascule.register_producer({cls.__qualname__}, stream_of=...), whose documentation lists the steps.",
                UnorderedProducerWarning,
            )
        except UnorderedProducerWarning:  # a filter made it an error; the next launch raises it again
            with _warning:
                _warned.discard(cls)
            raise
    return ("spec", None)


def capturing_library() -> str | None:
    """Return the name of a library that captures a graph in this thread, or None. Called by the extension module."""
    for module, name, is_capturing in _CAPTURING:
        library = sys.modules.get(module)
        try:
            if library is not None and is_capturing(library):
                return name
        except AttributeError:  # this version of the library has no such function
            continue
    return None


def side_streams(device: int) -> list[tuple[int, object]]:
    """Return the libraries' current streams in this thread, except default streams. Called by the extension module.

    Each entry is a handle and the object that keeps it valid, None if the stream is never destroyed, or False if that
    is not known.
    """
    found: list[tuple[int, object]] = []
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    try:
        if torch is not None and torch.cuda.is_initialized():
            stream = torch.cuda.current_stream(device)
            # Streams of PyTorch's own pool have odd identifiers; the identifier of an external stream is its handle.
            found.append((stream.cuda_stream, None if stream.stream_id & 1 else False))
    except AttributeError:  # this version has no such function, or the library is still being imported
        pass
    try:
        if cupy is not None:
            stream = cupy.cuda.get_current_stream()
            found.append((stream.ptr, stream if type(stream) is cupy.cuda.Stream else False))
    except AttributeError:
        pass
    return [(handle, keeper) for handle, keeper in found if handle > 2]


def stream_of_environment() -> str:
    """Return the checked value of BASCULE_STREAM_OF: "library" or "spec"."""
    value = os.environ.get("BASCULE_STREAM_OF", "") or "library"
    set_stream_of(value, "BASCULE_STREAM_OF")
    return value


def sync_of_environment() -> bool:
    """Return the checked value of BASCULE_CUDA_ARRAY_INTERFACE_SYNC, and apply it."""
    value = os.environ.get("BASCULE_CUDA_ARRAY_INTERFACE_SYNC") or "1"
    if value not in ("0", "1"):
        raise ArgumentValueError(
            f"BASCULE_CUDA_ARRAY_INTERFACE_SYNC is {value!r}: set it to 1 (foreign arrays' streams are waited for) or "
            "0 (they are not), or unset it."
        )
    _bascule._set_interface_sync(value == "1")
    return value == "1"


def set_stream_of(value: str, name: str = "bascule.config.stream_of") -> None:
    """Check and apply a value of `bascule.config.stream_of`."""
    if value not in ("library", "spec"):
        raise ArgumentTypeError(
            f'{name} is {value!r}: set it to "library" (use the library\'s stream for arrays that name none) or "spec" '
            "(do not)."
        )
    _bascule._ask_libraries(value == "library")
