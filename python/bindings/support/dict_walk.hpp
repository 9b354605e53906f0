// Iterates over the entries of a dict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <Python.h>

namespace bascule::python {

#if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#define BASCULE_KNOWS_DICTS 1
#endif

/// An entry of a dict, borrowed. Both pointers are null if the entry was removed.
struct DictEntry {
    PyObject* key;
    PyObject* value;
};

#ifdef BASCULE_KNOWS_DICTS
namespace detail {

/// The layout of a dict's table when all keys are strings, in CPython 3.11 to 3.14. No public header has it, and
/// PyDict_Next takes several times as long per entry. learn_dicts checks the layout when the module is imported.
struct DictTable {
    Py_ssize_t references;
    std::uint8_t log2_slots, log2_index_bytes, kind;
    std::uint32_t version;
    Py_ssize_t usable, entries;

    static constexpr std::uint8_t all_strings = 1;
};

inline bool knows_dicts = false;  // set once by learn_dicts

}  // namespace detail
#endif

/// The entries of a dict in place, valid until the dict changes. Empty if the layout is unknown: in other versions of
/// Python, and for dicts with keys that are not strings. walk_dict handles all dicts.
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

/// Calls `visit(key, value)`, both borrowed, for each entry. Nothing may change the dict meanwhile: `visit` must not
/// run Python code.
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

/// Compares both ways on a dict with a removed entry. If they differ, dicts are walked with PyDict_Next.
inline void learn_dicts() noexcept {
#ifdef BASCULE_KNOWS_DICTS
    PyObject* const dict = PyDict_New();
    if (dict == nullptr) return PyErr_Clear();
    const char* const keys[] = {"shape", "typestr", "removed", "data", "version", "strides", "stream"};
    bool made = true;
    for (const char* key : keys) made = made && PyDict_SetItemString(dict, key, Py_None) == 0;
    made = made && PyDict_DelItemString(dict, "removed") == 0;
    const auto* object = reinterpret_cast<const PyDictObject*>(dict);
    const auto* table = reinterpret_cast<const detail::DictTable*>(object->ma_keys);
    // Unless all of these hold, the entries are not read.
    made = made && object->ma_values == nullptr && table->kind == detail::DictTable::all_strings &&
           table->log2_slots == 4 && table->log2_index_bytes == 4 && table->entries == 7;
    if (made) {
        PyObject* by_next[8][2] = {};
        std::size_t count = 0;
        walk_dict(dict, [&](PyObject* key, PyObject* value) {
            by_next[count][0] = key;
            by_next[count++][1] = value;
        });
        detail::knows_dicts = true;
        std::size_t same = 0;
        walk_dict(dict, [&](PyObject* key, PyObject* value) {
            same += same < count && by_next[same][0] == key && by_next[same][1] == value ? 1U : 8U;
        });
        detail::knows_dicts = count == 6 && same == count;
    }
    PyErr_Clear();
    Py_DECREF(dict);
#endif
}

}  // namespace bascule::python
