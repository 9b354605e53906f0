"""The streams of libraries whose arrays name no stream."""

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from bascule import _bascule
from bascule._errors import ArgumentTypeError, UnorderedProducerWarning, warn

# Takes an array and the number of its device; returns an object that names a stream, or None.
_Ask = Callable[[Any, int], Any]


# By the first part of the module that a type, or one of its bases, was defined in. JAX orders by DLPack: it makes
# the stream that is to read the array wait for the array.
_KNOWN: dict[str, tuple[str, _Ask | None]] = {
    "torch": ("library", lambda _, device: sys.modules["torch"].cuda.current_stream(device).cuda_stream),
    "warp": ("library", lambda _, device: sys.modules["warp"].get_stream(f"cuda:{device}").cuda_stream),
    "jax": ("dlpack", None),
    "jaxlib": ("dlpack", None),
    "bascule": ("library", lambda exported, _: exported.array.stream),
}

# Whether a library captures a graph on its current stream in the calling thread: module, name, question.
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
_warning = threading.Lock()  # of _warned; not held while the warning is issued, which may run any code


@_bascule._public
def register_producer(cls: type, *, stream_of: Any) -> None:
    """Register the stream of arrays that name no stream themselves.

    From version 3 of `__cuda_array_interface__` on, an array names its stream, or None if there is nothing to wait for.
    Versions 0 to 2 have no stream: if work of the library is still pending, a kernel that does not wait for it reads
    unfinished data. Bascule knows the streams of

    PyTorch : the array's stream is `torch.cuda.current_stream()` of its device, as it is when the array is passed
        (or what PyTorch's DLPack exchange table says, where there is one). The launch waits for it, and later work on
        it waits for the launch. You must order work on other streams of PyTorch, as inside PyTorch:
        `torch.cuda.current_stream().wait_stream(side)`.
    Warp : the same with `warp.get_stream()` of the array's device.
    JAX : has no current stream. `array.__dlpack__(stream=...)` makes the launch's stream wait until the array is
        there, and keeps its memory. Nothing waits for the launch: JAX's arrays never change, and read-only ones are
        refused where a kernel writes.
    `DeviceArray.export(version=...)` : the bound stream.

    Every other type of array is used without waiting, with one `UnorderedProducerWarning` per type. To fix that, do one
    of these:

    - synchronise the library's stream before the launch, or launch on it: `kernel[grid, block, stream]`;
    - for one launch, name it: `kernel[grid, block].options(streams={"x": stream})(x)`;
    - register the type here, once.

    With `bascule.config.stream_of = "spec"` (or BASCULE_STREAM_OF=spec) none of this is done, and nothing is warned of.

    Parameters
    ----------
    cls : type
        The type of the arrays; subclasses are included.
    stream_of : callable, "dlpack" or "spec"
        A function that takes the array and returns its stream: an integer handle, an object that names a stream, or
        None if there is nothing to wait for. It is called before anything is enqueued, by any thread that launches.
        "dlpack": the array's `__dlpack__` makes the launch stream wait. "spec": nothing to wait for, and no warning.

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
    """How arrays of a type that names no stream are ordered. Called by the extension module, once per type."""
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
        except UnorderedProducerWarning:  # a filter made it an error: the next one is one too
            with _warning:
                _warned.discard(cls)
            raise
    return ("spec", None)


def capturing_library() -> str | None:
    """The name of a library that captures a graph in this thread, or None. Called by the extension module."""
    for module, name, is_capturing in _CAPTURING:
        library = sys.modules.get(module)
        try:
            if library is not None and is_capturing(library):
                return name
        except AttributeError:  # a version that cannot be asked
            continue
    return None


def side_streams(device: int) -> list[tuple[int, object]]:
    """The streams, but for default ones, that are current for libraries in this thread. Called by the extension module.

    Each is its handle and what keeps it good: an object, None (the stream is never destroyed) or False (not known).
    """
    found: list[tuple[int, object]] = []
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    try:
        if torch is not None and torch.cuda.is_initialized():
            stream = torch.cuda.current_stream(device)
            # Those of PyTorch's own pool have odd identifiers; an external stream's is its handle.
            found.append((stream.cuda_stream, None if stream.stream_id & 1 else False))
    except AttributeError:  # a version that cannot be asked, or one that is only being imported
        pass
    try:
        if cupy is not None:
            stream = cupy.cuda.get_current_stream()
            found.append((stream.ptr, stream if type(stream) is cupy.cuda.Stream else False))
    except AttributeError:
        pass
    return [(handle, keeper) for handle, keeper in found if handle > 2]


def stream_of_environment() -> str:
    """BASCULE_STREAM_OF, checked: "library" or "spec"."""
    value = os.environ.get("BASCULE_STREAM_OF", "") or "library"
    set_stream_of(value, "BASCULE_STREAM_OF")
    return value


def set_stream_of(value: str, name: str = "bascule.config.stream_of") -> None:
    """Set `bascule.config.stream_of`."""
    if value not in ("library", "spec"):
        raise ArgumentTypeError(
            f'{name} is {value!r}: set it to "library" (use the library\'s stream for arrays that name none) or "spec" '
            "(do not)."
        )
    _bascule._ask_libraries(value == "library")
