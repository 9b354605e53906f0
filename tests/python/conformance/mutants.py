"""A table of every check of a descriptor: its place in the sources, and the code without it.

A check is removed in a copy of the sources (mutation.py); its row of CONFORMANCE.md must then fail. The copies run, so
what a source accepts without its check must still be safe to continue with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ACCESS = "interface/arguments/array_argument.cpp"
VALUES = "interface/arrays/array_interface.cpp"
MASKS = "interface/arrays/mask.cpp"
TYPES = "interface/types/dtype.cpp"
STRUCTS = "interface/types/struct_layout.cpp"
READER = "python/bindings/exchange/interface_reader.cpp"
DESCR = "python/bindings/exchange/descr.cpp"
MASK_READER = "python/bindings/arrays/mask.cpp"
MEMORY = "runtime/driver/home_device.cpp"


@dataclass(frozen=True)
class Mutant:
    """One check removed from one file.

    `text` occurs once in the file; a space in it matches any white space. The mutant replaces the expression
    between « and » by `without`. If «» stands before a statement, the mutant executes `without` before the statement,
    or skips the statement if `without` is empty.
    """

    check: str
    row: int
    file: str
    text: str
    without: str = "false"


ABSENCE = "take_absence() { if («!PyErr_ExceptionMatches(PyExc_AttributeError)»)"
SIGNED = "read_int64(PyObject* object, const IntegerField& field) { const py::object integer = «as_integer(object)»;"
UNSIGNED = SIGNED.replace("read_int64", "read_uint64")
ANY_BOOL = "(PyBool_Check(object) || is_numpy_bool(object))"
ACCEPTED = "accepts(declared, array)"
ELEMENTS = f"if («!{ACCEPTED}») refuse_elements"
BIT = "array.dtype.kind == DType::Kind::bit"
REACH = "__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &reach)"


def integer(check: str, row: int, text: str, of: str) -> Mutant:
    """A mutant that reads any value of one field as the integer 1."""
    return Mutant(check, row, READER, text, f"{of} ? py::object(py::int_(1)) : as_integer(object)")


def signed_range(check: str, row: int, field: str) -> Mutant:
    return Mutant(check, row, READER, "if («overflow != 0») {", f"overflow != 0 && &field != &{field}")


def unsigned_range(check: str, row: int, field: str) -> Mutant:
    fails = '«»fail(ErrorKind::value, field.name, fmt::format("{}, at least 0'
    return Mutant(
        check, row, READER, fails, f"if (&field == &{field}) return PyLong_AsUnsignedLongLongMask(integer.ptr());"
    )


def sequence(check: str, row: int, field: str) -> Mutant:
    fails = "«»fail(ErrorKind::type, field, expected, object);"
    return Mutant(
        check, row, READER, fails, f'if (field == std::string_view("{field}")) return py::make_tuple(1, false);'
    )


def present(check: str, row: int, key: str, reads: str) -> Mutant:
    """A mutant that does not read a required key, so that nothing notices if it is missing."""
    return Mutant(check, row, READER, f"«»{reads}(entries.required(Key::{key})", "")


MUTANTS = [
    # Access
    Mutant("attribute_error", 1, READER, ABSENCE, "true"),
    Mutant("producer_exception", 2, READER, ABSENCE),
    Mutant(
        "mapping", 4, READER, '«»reject(ErrorKind::type, {.field = "__cuda_array_interface__", .expected = "a dict"', ""
    ),
    Mutant("instance", 4, READER, "descriptor && «PyType_Check(object)»"),
    # Version
    present("version_present", 13, "version", "raw.version = read_int64"),
    integer("version_integer", 14, SIGNED, "&field == &version_field"),
    Mutant("version_negative", 14, VALUES, "«raw.version < 0»"),
    signed_range("version_range", 15, "version_field"),
    Mutant("version_newer", 15, VALUES, "«raw.version > newest_version && !raw.accept_newer»"),
    # Shape
    present("shape_present", 17, "shape", "read_dimensions"),
    sequence("shape_sequence", 17, "shape"),
    integer("extent_integer", 17, SIGNED, f"&field == &extent_field && !{ANY_BOOL}"),
    integer("extent_bool", 19, SIGNED, f"&field == &extent_field && {ANY_BOOL}"),
    Mutant("extent_negative", 20, VALUES, "«extent < 0»"),
    signed_range("extent_range", 21, "extent_field"),
    Mutant("shape_bytes", 21, VALUES, "if («overflows») [[unlikely]]"),
    Mutant(
        "shape_dimensions",
        22,
        READER,
        "const Py_ssize_t size = «PyTuple_GET_SIZE(tuple.ptr())»;",
        "std::min<Py_ssize_t>(PyTuple_GET_SIZE(tuple.ptr()), max_dimensions)",
    ),
    Mutant("shape_length", 22, READER, "«said != PyTuple_GET_SIZE(tuple.ptr())»"),
    # Element type and descr
    Mutant("typestr_big_endian", 24, TYPES, "«order == '>' && *itemsize > 1»"),
    Mutant("element_type", 26, ACCESS, ELEMENTS, f"{BIT} && !{ACCEPTED}"),
    Mutant("descr_total", 27, STRUCTS, "«end != bytes»"),
    Mutant(
        "descr_form",
        29,
        DESCR,
        "«»const std::vector<DescrEntry> entries =",
        "if (!PyList_Check(descr)) return nullptr;",
    ),
    Mutant("descr_contradiction", 29, DESCR, '«»fail(ErrorKind::value, fmt::format("contradicts', "return nullptr;"),
    Mutant("typestr_object", 30, TYPES, "«letter == 'O'»"),
    Mutant("typestr_unit", 31, TYPES, "if («!read_unit(unit, time)»)", "(read_unit(unit, time), false)"),
    Mutant("typestr_string", 32, TYPES, "«letter == 'S' || letter == 'U'»"),
    Mutant("bits", 32, ACCESS, ELEMENTS, f"!({BIT}) && !{ACCEPTED}"),
    present("typestr_present", 33, "typestr", "raw.typestr = read_typestr"),
    Mutant("typestr_text", 33, READER, "if («!PyUnicode_Check(object)») fail("),
    Mutant("typestr_unicode", 33, READER, '«»fail(ErrorKind::value, "typestr", "an ASCII', 'return "|u1";'),
    Mutant(
        "typestr_form",
        33,
        TYPES,
        "«»if (typestr.size() < 3) fail",
        "if (typestr.size() < 3) return {DTypeKind::opaque, 1};",
    ),
    Mutant("typestr_order", 33, TYPES, "«order != '<' && order != '|' && order != '>' && order != '='»"),
    Mutant("typestr_size", 33, TYPES, "«»if (!itemsize) fail", "if (!itemsize) return {DTypeKind::opaque, 1};"),
    Mutant(
        "typestr_known",
        33,
        TYPES,
        '«»fail(ArgumentError::Kind::value, typestr, "no element type',
        "return {DTypeKind::opaque, *itemsize};",
    ),
    # Data
    present("data_present", 34, "data", "read_data"),
    sequence("data_sequence", 34, "data"),
    Mutant("data_pair", 34, READER, "if («PyTuple_GET_SIZE(pair.ptr()) != 2»)", "PyTuple_GET_SIZE(pair.ptr()) < 2"),
    Mutant("pointer_none", 35, VALUES, "if («raw.pointer_is_none»)"),
    Mutant("pointer_null", 38, VALUES, "«raw.pointer == 0»"),
    integer("pointer_integer", 39, UNSIGNED, "&field == &pointer_field"),
    unsigned_range("pointer_range", 39, "pointer_field"),
    Mutant("readonly_flag", 40, READER, '«»fail(ErrorKind::type, "data", "a pair of', "return false;"),
    Mutant("readonly_access", 41, ACCESS, "«!array.writable_by_kernels() && !parameter.type.constant»"),
    Mutant("address_space", 42, VALUES, "if («reach == Reach::leaves»)"),
    Mutant("pointer_alignment", 42, ACCESS, "«array.pointer % alignment != 0»"),
    # Strides
    Mutant(
        "contiguous",
        44,
        ACCESS,
        "if («seen.ndim() == array.ndim() ? array.c_contiguous : is_packed(seen, true)») return",
        "true",
    ),
    Mutant("broadcast", 46, ACCESS, "«seen.strides[d] != 0»", "true"),
    Mutant("strides_count", 47, VALUES, "if («raw.strides.size() != raw.shape.size()»)"),
    Mutant("stride_alignment", 49, ACCESS, "«seen.strides[d] % alignment == 0»", "true"),
    Mutant("span_order", 49, ACCESS, "«seen.strides[d] <= 0 || seen.strides[d] % seen.dtype.itemsize != 0»"),
    Mutant("span_order", 49, ACCESS, "if («!is_packed(seen, right)») {"),
    sequence("strides_sequence", 50, "strides"),
    integer("stride_integer", 50, SIGNED, "&field == &stride_field"),
    signed_range("stride_range", 50, "stride_field"),
    Mutant("strides_reach", 50, VALUES, f"if («{REACH}») return Reach::too_far;", f"({REACH}, false)"),
    # Mask, stream, memory
    Mutant("mask_parameter", 51, ACCESS, "if («parameter.type.kind != Declared::masked_view») refuse_array("),
    Mutant(
        "mask_interface",
        52,
        MASK_READER,
        "«!described»",
        "(described || (described.emplace(), false)) && false",
    ),
    Mutant("mask_nested", 52, MASK_READER, "if («described->mask»)", "py::object()"),
    Mutant(
        "mask_kind",
        52,
        MASKS,
        "if («kind <= DType::Kind::unsigned_integer || kind == DType::Kind::bit») return;",
        "true",
    ),
    Mutant("mask_shape", 52, MASKS, "if («broadcasts») return;", "true"),
    Mutant("mask_layout", 52, MASKS, "if («!mask.c_contiguous»)"),
    Mutant("mask_layout", 52, MASKS, "if («!aligned»)"),
    Mutant("mask_bits", 52, MASKS, "if («!ambiguous || !may_be_bits(array, mask)»)", "true"),
    Mutant("stream_zero", 54, VALUES, "if («raw.stream == 0U») {"),
    integer("stream_integer", 56, UNSIGNED, "&field == &stream_field"),
    unsigned_range("stream_range", 56, "stream_field"),
    Mutant("memory_known", 58, MEMORY, "«»const auto [first, end] = bytes_of(array); if (!device.", "return;"),
    Mutant("memory_device", 60, MEMORY, "«told != no_device_named && told != memory.device»"),
    Mutant("memory_device", 60, MEMORY, "if («!is_primary(memory)»)"),
    Mutant("memory_device", 60, MEMORY, "if («home.decided») fail_elsewhere"),
    Mutant(
        "memory_extent",
        62,
        MEMORY,
        "return; «»reject( ErrorKind::value, {.field =",
        "return;",
    ),
]

# Copied into each mutated file: is_mutant(CHECK) is true if BASCULE_MUTANT names the check.
IS_MUTANT = """\
#ifndef BASCULE_IS_MUTANT
#define BASCULE_IS_MUTANT
#include <cstdlib>
#include <string_view>
namespace {
inline bool is_mutant(std::string_view check) {
    const char* chosen = std::getenv("BASCULE_MUTANT");
    return chosen != nullptr && check == chosen;
}
}  // namespace
#endif
"""


def mutated(file: str, source: str) -> str:
    """Returns the source with each check disabled when BASCULE_MUTANT names it; ValueError if a check is missing."""
    inserted: dict[tuple[int, int], list[Mutant]] = {}
    for mutant in (mutant for mutant in MUTANTS if mutant.file == file):
        pattern = re.escape(mutant.text).replace(r"\ ", r"\s+").replace("«", "(").replace("»", ")")
        found = list(re.finditer(pattern, source))
        if len(found) != 1:
            raise ValueError(f"{file} has {len(found)} places where check {mutant.check} could be: {mutant.text!r}")
        inserted.setdefault(found[0].span(1), []).append(mutant)
    for (begin, end), mutants in sorted(inserted.items(), reverse=True):
        text = source[begin:end]
        for mutant in mutants:
            chosen = f'is_mutant("{mutant.check}")'
            if begin < end:
                text = f"({chosen} ? ({mutant.without}) : ({text}))"
            elif mutant.without:
                text += f"if ({chosen}) {{ {mutant.without} }}\n"
            else:
                text += f"if (!{chosen}) "
        source = source[:begin] + text + source[end:]
    return IS_MUTANT + source
