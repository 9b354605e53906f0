"""Prints the values of a DeviceArray as NumPy does. Of a long array, only the ends are read and printed."""

import itertools
from typing import Any

import numpy as np

from bascule import _bascule, _errors

_LONGEST = 1000  # arrays up to this size are printed whole: NumPy's default
_EDGE = 3  # elements printed at each end of an axis of a longer array


def repr_of(array: _bascule.DeviceArray) -> str:
    """Return the array's repr, which says why if the values cannot be read. Called by the extension module."""
    values, why_not = read_values(array, _LONGEST, "DeviceArray(")
    if why_not:
        return f"<bascule.DeviceArray shape={array.shape} dtype={array.dtype} on {place_of(array)}: {why_not}>"
    return f"DeviceArray({values}, shape={array.shape}, dtype={array.dtype}, {place_of(array)})"


def place_of(array: _bascule.DeviceArray) -> str:
    device = repr(array.device).removeprefix("<bascule.Device ").removesuffix(">")
    return f"{device}, read-only" if array.readonly else device


def read_values(array: _bascule.DeviceArray, most: int, prefix: str = "") -> tuple[str, str]:
    """Return the values as text and "", or "" and why not. Of more than `most` values, only the ends. Never raises."""
    try:
        if _bascule._is_captured(array):  # a capture breaks if something waits for its stream
            return "", "its stream is being captured"
        whole = array.size <= most
        host = array.copy_to_host() if whole else _ends_of(array)
        if isinstance(host, np.ma.MaskedArray):
            elements = host.data.astype("O")
            elements[host.mask] = np.ma.masked_print_option
            host = elements
        threshold = most if whole else 0
        return np.array2string(host, separator=", ", prefix=prefix, threshold=threshold, edgeitems=_EDGE), ""
    except Exception as error:
        message = str(error) if isinstance(error, _errors.Error) else f"{type(error).__name__}: {error}"
        first, *_ = message.split("\n")  # the rest is advice for explicit reads
        return "", f"values cannot be read: {first}"


def _ends_of(array: _bascule.DeviceArray) -> Any:
    """Return a host array that NumPy prints like the whole one."""
    axes = [_pieces(extent) for extent in array.shape]
    library = np if array.mask is None else np.ma
    host = library.empty([pieces[-1][1].stop for pieces in axes], array.dtype)
    for chosen in itertools.product(*axes):
        read, written = zip(*chosen, strict=True)
        host[written] = array[read].copy_to_host()
    return host


def _pieces(extent: int) -> list[tuple[slice, slice]]:
    """Return the parts of an axis that are read, and their places in the host array.

    Along a long axis, the host array has one element more than is printed, so that NumPy prints "..." there.
    """
    if extent <= 2 * _EDGE:
        return [(slice(0, extent), slice(0, extent))]
    first = slice(0, _EDGE + 1)
    return [(first, first), (slice(extent - _EDGE, extent), slice(_EDGE + 1, 2 * _EDGE + 1))]
