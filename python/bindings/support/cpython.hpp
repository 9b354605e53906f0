// Accesses parts of CPython without a documented API: the layout of dicts, ints, texts and types in memory, and the
// state of threads. check_cpython compares the layouts with the API when the module is imported.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "support/pybind.hpp"

namespace bascule::python {

/// Throws: ImportError if this Python stores ints, texts or types in another way. If dicts differ, PyDict_Next reads them.
void check_cpython();

// --- Threads

/// False once the interpreter is finalizing. Python objects are then leaked.
inline bool interpreter_lives() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() == 0;
#else
    return _Py_IsFinalizing() == 0;
#endif
}

/// The state of this thread if it holds the GIL; otherwise null.
inline PyThreadState* attached_thread_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

// --- Types

/// Looks up an attribute in the dicts of the class and its bases, as Python does for objects of the class. The
/// metaclass has no influence. Null if there is none.
inline py::object class_attribute(PyTypeObject* type, PyObject* name) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return py::reinterpret_steal<py::object>(_PyType_LookupRef(type, name));
#else
    return py::reinterpret_borrow<py::object>(_PyType_Lookup(type, name));
#endif
}

/// The version of a type, which every change of the type replaces. 0 means none.
inline unsigned int version_tag(PyTypeObject* type) noexcept {
    return std::atomic_ref(type->tp_version_tag).load(std::memory_order_relaxed);
}

// --- Ints

namespace detail {

/// The digits of an int, and a tag with their number and the sign. It is `one_digit` for a positive int of one digit,
/// and twice that for two digits.
struct IntParts {
    const digit* digits;
#if PY_VERSION_HEX >= 0x030C0000
    std::uintptr_t tag;  // bits 3 and up: the count; bits 0 and 1: the sign (0 positive, 1 zero, 2 negative)
    static constexpr std::uintptr_t one_digit = 8;
#if PY_VERSION_HEX >= 0x030E0000
    static constexpr std::uintptr_t immortal = 4;
#else
    static constexpr std::uintptr_t immortal = 0;
#endif
    explicit IntParts(const PyLongObject& number) noexcept
        : digits(number.long_value.ob_digit), tag(number.long_value.lv_tag & ~immortal) {}
    std::uintptr_t count() const noexcept { return tag >> 3; }
    bool negative() const noexcept { return (tag & 3) == 2; }
#else
    Py_ssize_t tag;  // the count, below 0 for negative ints
    static constexpr Py_ssize_t one_digit = 1;
    explicit IntParts(const PyLongObject& number) noexcept : digits(number.ob_digit), tag(Py_SIZE(&number)) {}
    std::uintptr_t count() const noexcept { return static_cast<std::uintptr_t>(tag < 0 ? -tag : tag); }
    bool negative() const noexcept { return tag < 0; }
#endif
};

[[gnu::always_inline]] inline IntParts parts_of_int(PyObject* exact) noexcept {
    return IntParts(*reinterpret_cast<const PyLongObject*>(exact));
}

}  // namespace detail

/// The value of a Python int (exactly that type) of at most two digits, which is 60 bits on every usual build. Empty
/// for longer ints and for other objects.
[[gnu::always_inline]] inline std::optional<std::int64_t> short_integer(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return std::nullopt;
    const detail::IntParts parts = detail::parts_of_int(object);
    const std::uintptr_t count = parts.count();
    if (count > 2) return std::nullopt;
    std::int64_t value = count > 0 ? parts.digits[0] : 0;
    if (count > 1) value |= static_cast<std::int64_t>(parts.digits[1]) << PyLong_SHIFT;
    return parts.negative() ? -value : value;
}

/// The same for positive ints; 0 for all other objects.
[[gnu::always_inline]] inline std::int64_t short_positive(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return 0;
    const detail::IntParts parts = detail::parts_of_int(object);
    if (parts.tag == parts.one_digit) return parts.digits[0];
    if (parts.tag != 2 * parts.one_digit) return 0;
    return parts.digits[0] | static_cast<std::int64_t>(parts.digits[1]) << PyLong_SHIFT;
}

/// The value of a positive int of one digit, which is 30 bits; 0 for all other objects.
[[gnu::always_inline]] inline digit one_digit(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return 0;
    const detail::IntParts parts = detail::parts_of_int(object);
    return parts.tag == parts.one_digit ? parts.digits[0] : 0;
}

// --- Texts

/// The characters of a text for which PyUnicode_IS_COMPACT_ASCII holds, with a terminating zero.
inline const char* ascii_characters(PyObject* text) noexcept {
    return reinterpret_cast<const char*>(reinterpret_cast<const PyASCIIObject*>(text) + 1);
}

// --- Dicts

/// An entry of a dict. Both are borrowed, and null if the entry was removed.
struct DictEntry {
    PyObject* key;
    PyObject* value;
};

#if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#define BASCULE_KNOWS_DICTS 1
namespace detail {

/// The table of a dict whose keys are all strings, in CPython 3.11 to 3.14. PyDict_Next takes several times as long per entry.
struct DictTable {
    Py_ssize_t references;
    std::uint8_t log2_slots, log2_index_bytes, kind;
    std::uint32_t version;
    Py_ssize_t usable, entries;

    static constexpr std::uint8_t all_strings = 1;
};

inline bool knows_dicts = false;  // set once by check_cpython

}  // namespace detail
#endif

/// The entries of a dict in memory, valid until the dict changes. Empty also if the layout is not known: in other
/// versions of Python, and for dicts with other keys than strings. walk_dict walks all dicts.
[[gnu::always_inline]] inline std::span<const DictEntry> entries_of(PyObject* dict) noexcept {
#ifdef BASCULE_KNOWS_DICTS
    const auto* object = reinterpret_cast<const PyDictObject*>(dict);
    const auto* table = reinterpret_cast<const detail::DictTable*>(object->ma_keys);
    if (detail::knows_dicts && object->ma_values == nullptr && table->kind == detail::DictTable::all_strings)
        [[likely]] {
        const auto* first =
            reinterpret_cast<const char*>(table + 1) + (std::size_t{1} << table->log2_index_bytes);
        return {reinterpret_cast<const DictEntry*>(first), static_cast<std::size_t>(table->entries)};
    }
#endif
    return {};
}

/// Calls `visit(key, value)` with borrowed references for each entry. The dict must not change meanwhile, so `visit`
/// must not run Python code.
template <class Visit>
void walk_dict(PyObject* dict, Visit&& visit) noexcept {
    const std::span<const DictEntry> entries = entries_of(dict);
    for (const DictEntry& entry : entries) {
        if (entry.value != nullptr) visit(entry.key, entry.value);
    }
    if (!entries.empty()) return;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value) != 0) visit(key, value);
}

}  // namespace bascule::python
