// What most producers say by `__cuda_array_interface__`, read in few instructions: inline, because a launch does it for
// each array.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <pybind11/critical_section.h>
#include <pybind11/pybind11.h>

#include <bascule/interface/arrays/plain_array.hpp>

#include "exchange/type_profile.hpp"
#include "support/dict_walk.hpp"
#include "support/integers.hpp"

namespace bascule::python {

/// The keys of a descriptor by their numbers.
struct Key {
    enum : unsigned { shape, typestr, data, version, strides, mask, stream, descr, count };
};

/// The values of a descriptor by the numbers of their keys, borrowed; null where there is none.
using KeyValues = std::array<PyObject*, Key::count>;

namespace detail {

inline KeyValues key_names{};  // interned; set once by bind_interface_reader

/// Whether a key, or null, has the text of `name`, which is one of ours, with 4 to 7 characters. pybind11 and nanobind make
/// keys that are equal without being interned.
bool is_same_text(PyObject* key, PyObject* name) noexcept;

/// The values wherever they are; `keys` learns where.
KeyValues learn_values(PyObject* dict, KeyPlaces& keys) noexcept;

/// The values where they were last. False where an entry is another than it was: then `values` is half written.
[[gnu::always_inline]] inline bool find_values(std::span<const DictEntry> entries, const KeyPlaces& keys,
                                               KeyValues& values) noexcept {
    if (entries.size() != keys.entries || entries.empty()) return false;
    const auto find = [&](unsigned key) __attribute__((always_inline)) {
        const std::uint8_t place = keys.places[key];
        if (place == KeyPlaces::nowhere) {
            values[key] = nullptr;
            return true;
        }
        const DictEntry& entry = entries[place];
        values[key] = entry.value;
        return entry.key == key_names[key] || is_same_text(entry.key, key_names[key]);
    };
    return find(Key::shape) && find(Key::typestr) && find(Key::data) && find(Key::version) &&
           find(Key::strides) && find(Key::mask) && find(Key::stream) && find(Key::descr);
}

/// "<f4" and its like, three characters of ASCII; not_plain for anything else.
[[gnu::always_inline]] inline PlainTraits traits_of(PyObject* text, bool readonly) noexcept {
    if (text == nullptr || !PyUnicode_CheckExact(text) || !PyUnicode_IS_COMPACT_ASCII(text) ||
        PyUnicode_GET_LENGTH(text) != 3) {
        return not_plain;
    }
    const auto* character = static_cast<const char*>(PyUnicode_DATA(text));
    const auto bytes = static_cast<std::uint32_t>(character[2] - '0');
    const bool ordered = character[0] == '<' || (character[0] == '|' && bytes == 1);
    if (!ordered || bytes - 1 > 7 || (bytes & (bytes - 1)) != 0) return not_plain;
    switch (character[1]) {
        case 'f':
            return bytes == 1 ? not_plain : plain_traits({DType::Kind::floating, bytes}, readonly);
        case 'i':
            return plain_traits({DType::Kind::signed_integer, bytes}, readonly);
        case 'u':
            return plain_traits({DType::Kind::unsigned_integer, bytes}, readonly);
        default:
            return not_plain;
    }
}

/// Extents of at least 1 and, said or not, strides of C order; false for anything else. `bytes` are an element's at
/// first, then the array's.
[[gnu::always_inline]] inline bool read_plain_shape(PyObject* tuple, PyObject* strides, std::int64_t& bytes,
                                                    Dimensions* shape) noexcept {
    if (tuple == nullptr || !PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > max_dimensions)
        return false;
    const auto axes = static_cast<int>(PyTuple_GET_SIZE(tuple));
    const bool said = strides != nullptr && strides != Py_None;
    if (said && (!PyTuple_CheckExact(strides) || PyTuple_GET_SIZE(strides) != axes)) return false;
    if (shape != nullptr) shape->resize(axes);
    for (int d = axes - 1; d >= 0; --d) {
        const std::int64_t extent = short_positive(PyTuple_GET_ITEM(tuple, d));
        if (extent == 0 || (said && short_positive(PyTuple_GET_ITEM(strides, d)) != bytes) ||
            __builtin_mul_overflow(bytes, extent, &bytes)) {
            return false;
        }
        if (shape != nullptr) (*shape)[d] = extent;
    }
    return true;
}

/// `[("", typestr)]`, as NumPy describes elements without fields; a missing one says as much.
inline bool is_plain_descr(PyObject* list, PyObject* typestr) noexcept {
    if (list == nullptr || list == Py_None) return true;
#ifdef Py_GIL_DISABLED
    return false;  // another thread may change the list meanwhile
#endif
    if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) != 1) return false;
    PyObject* const pair = PyList_GET_ITEM(list, 0);
    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return false;
    PyObject* const name = PyTuple_GET_ITEM(pair, 0);
    PyObject* const type = PyTuple_GET_ITEM(pair, 1);
    return PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) == 0 &&
           traits_of(type, false) == traits_of(typestr, false);
}

}  // namespace detail

/// Reads a descriptor that is what most producers say: a dict of tuples, short ints and a typestr of numbers, C
/// order, not empty, no mask, no fields, and nothing wrong. read_descriptor and validate would take it too. False for all
/// others; then `array` is half written. The extents go to `shape`, unless it is null. `keys` says where the keys were
/// last. Runs no Python code and allocates nothing.
[[gnu::always_inline]] inline bool read_plainly(PyObject* descriptor, KeyPlaces& keys, PlainArray& array,
                                                Dimensions* shape) noexcept {
    if (!PyDict_CheckExact(descriptor)) return false;
    const pybind11::scoped_critical_section undisturbed(descriptor);
    KeyValues found;
    if (!detail::find_values(entries_of(descriptor), keys, found)) [[unlikely]]
        found = detail::learn_values(descriptor, keys);
    const auto given = [&](unsigned key) { return found[key] == Py_None ? nullptr : found[key]; };

    PyObject* const pair = found[Key::data];
    if (pair == nullptr || !PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return false;
    array.pointer = static_cast<std::uint64_t>(short_positive(PyTuple_GET_ITEM(pair, 0)));
    PyObject* const readonly = PyTuple_GET_ITEM(pair, 1);
    if (array.pointer == 0 || (readonly != Py_True && readonly != Py_False)) return false;

    array.traits = detail::traits_of(found[Key::typestr], readonly == Py_True);
    if (array.traits == not_plain) return false;
    std::int64_t bytes = plain_itemsize(array.traits);
    if (!detail::read_plain_shape(found[Key::shape], found[Key::strides], bytes, shape)) return false;
    array.bytes = static_cast<std::uint64_t>(bytes);

    const std::int64_t version = found[Key::version] == nullptr ? 0 : short_positive(found[Key::version]);
    if (version == 0 || version > 3) return false;
    array.version = static_cast<std::int32_t>(version);

    array.stream = 0;
    if (PyObject* const value = given(Key::stream)) {
        array.stream = static_cast<std::uint64_t>(short_positive(value));
        if (array.stream == 0) return false;
    }
    return given(Key::mask) == nullptr && detail::is_plain_descr(found[Key::descr], found[Key::typestr]);
}

}  // namespace bascule::python
