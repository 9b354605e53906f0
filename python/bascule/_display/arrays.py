"""Arrays: what they are, and some of their values, which wait for the array's stream as its repr does."""

from __future__ import annotations

from bascule import _bascule
from bascule._display.document import Code, Document, bytes_text

_MOST_VALUES = 200  # that are all shown; of a longer array, the ends


def array(array: _bascule.DeviceArray) -> Document:
    """Never raises: where the values cannot be read, it says why."""
    facts = _bascule._array_facts(array, _MOST_VALUES)
    pairs = [
        ("shape", str(array.shape)),
        ("dtype", str(array.dtype)),
        ("size", bytes_text(array.nbytes)),
        ("device", facts["place"]),
    ]
    if not array.c_contiguous:
        order = ", Fortran order" if array.f_contiguous else ""
        pairs.append(("strides", f"{array.strides} bytes{order}"))
    if array.mask is not None:
        pairs.append(("mask", "masked: invalid elements are shown as --"))
    pairs.append(("stream", _stream(array.stream)))
    if facts["why_not"]:
        return Document("DeviceArray", "", [*pairs, ("values", facts["why_not"])])
    return Document("DeviceArray", "", pairs, [Code(facts["values"])])


def _stream(stream: _bascule.Stream | None) -> str:
    if stream is None:
        return "none: made with sync=False"
    return repr(stream).removeprefix("<bascule.Stream ").removesuffix(">")
