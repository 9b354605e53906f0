// The entries of a dict, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <Python.h>

namespace bascule::python {

#if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#define BASCULE_KNOWS_DICTS 1
#endif

/// An entry of a dict: borrowed; both null where one was removed.
struct DictEntry {
    PyObject* key;
    PyObject* value;
};

#ifdef BASCULE_KNOWS_DICTS
namespace detail {

/// How a dict of which every key is a string keeps its entries, in CPython 3.11 to 3.14. No public header says it, and
/// PyDict_Next costs several times as much an entry; learn_dicts compares the two when the module is imported.
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

/// The entries of a dict where they lie, good until it is changed. Empty also where that is not known: in other versions
/// of Python, and for dicts with keys that are not strings; walk_dict walks all dicts.
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

/// Calls `visit(key, value)`, both borrowed, for each entry. Nobody may change the dict meanwhile: `visit` runs no
/// Python code.
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

/// Compares the two ways on a dict with a removed entry. Where they differ, this Python's dicts are walked by
/// PyDict_Next.
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
    // Where these do not say what they must, the entries are not looked at.
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
