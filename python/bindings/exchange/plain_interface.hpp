// The fast path for `__cuda_array_interface__`. Reads the descriptors of most producers in few instructions. Inline,
// because a launch calls it for each array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <bascule/interface/arrays/plain_array.hpp>

#include "types/type_profile.hpp"

namespace bascule::python {

/// The keys of a descriptor, numbered.
struct Key {
    enum : unsigned { shape, typestr, data, version, strides, mask, stream, descr, count };
};

/// The values of a descriptor by key number, borrowed; null for missing keys.
using KeyValues = std::array<PyObject*, Key::count>;

namespace detail {

using namespace std::string_view_literals;

inline KeyValues key_names{};  // interned; set once by bind_interface_reader

constexpr std::uint32_t four_characters(const char* text) noexcept {
    std::uint32_t four = 0;
    for (int i = 3; i >= 0; --i) four = four << 8 | static_cast<unsigned char>(text[i]);
    return four;
}

/// A text of 4 to 7 characters as two overlapping integers, which are compared quickly.
struct ShortText {
    consteval ShortText(std::string_view text)  // NOLINT(google-explicit-constructor): a table of texts
        : size(static_cast<Py_ssize_t>(text.size())),
          first(four_characters(text.data())),
          last(four_characters(text.data() + text.size() - 4)) {}

    Py_ssize_t size;
    std::uint32_t first, last;
};

/// The texts of key_names.
inline constexpr std::array<ShortText, Key::count> key_texts = {
    "shape"sv, "typestr"sv, "data"sv, "version"sv, "strides"sv, "mask"sv, "stream"sv, "descr"sv};

/// True if a string has this text; false for null. pybind11 and nanobind make keys that are equal without being interned.
[[gnu::always_inline]] inline bool is_same_text(PyObject* key, const ShortText& text) noexcept {
    if (key == nullptr || PyUnicode_GET_LENGTH(key) != text.size || !PyUnicode_IS_COMPACT_ASCII(key))
        return false;
    const char* const given = ascii_characters(key);
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, given, sizeof first);
    std::memcpy(&last, given + text.size - sizeof last, sizeof last);
    return first == text.first && last == text.last;
}

/// Finds the values of a dict by a walk. Runs no Python code.
KeyValues walk_values(PyObject* dict) noexcept;
/// The same; also stores the positions of the keys in `keys`.
KeyValues learn_values(PyObject* dict, KeyPlaces& keys) noexcept;

/// Finds the values at the positions in `keys`. Returns false if another key is there; `values` is then partly written.
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
        return entry.key == key_names[key] || is_same_text(entry.key, key_texts[key]);
    };
    return find(Key::shape) && find(Key::typestr) && find(Key::data) && find(Key::version) &&
           find(Key::strides) && find(Key::mask) && find(Key::stream) && find(Key::descr);
}

/// A typestr of numbers (four bytes with the terminating zero) and its traits.
struct PlainTypestr {
    std::uint32_t text = 0;
    PlainTraits traits = not_plain;
};

/// The index of a typestr in plain_typestrs. No two of them have the same index.
constexpr std::size_t place_of_typestr(std::uint32_t text) noexcept { return text * 0x9E37'79B1U >> 27; }

inline constexpr auto plain_typestrs = [] {
    using enum DType::Kind;
    constexpr std::pair<std::string_view, DType> all[] = {
        {"|i1", {signed_integer, 1}},   {"<i2", {signed_integer, 2}},   {"<i4", {signed_integer, 4}},
        {"<i8", {signed_integer, 8}},   {"|u1", {unsigned_integer, 1}}, {"<u2", {unsigned_integer, 2}},
        {"<u4", {unsigned_integer, 4}}, {"<u8", {unsigned_integer, 8}}, {"<f2", {floating, 2}},
        {"<f4", {floating, 4}},         {"<f8", {floating, 8}},
    };
    std::array<PlainTypestr, 32> table;
    for (const auto& [typestr, dtype] : all) {
        const std::uint32_t text = four_characters(typestr.data());  // with the zero
        PlainTypestr& row = table[place_of_typestr(text)];
        if (row.text != 0) throw "two of them share a place";
        row = {text, plain_traits(dtype, false)};
    }
    return table;
}();

/// The traits of a typestr of numbers as NumPy writes it, such as "<f4"; not_plain for anything else.
[[gnu::always_inline]] inline PlainTraits traits_of(PyObject* typestr) noexcept {
    if (typestr == nullptr || !PyUnicode_CheckExact(typestr) || PyUnicode_GET_LENGTH(typestr) != 3 ||
        !PyUnicode_IS_COMPACT_ASCII(typestr)) {
        return not_plain;
    }
    std::uint32_t text = 0;
    std::memcpy(&text, ascii_characters(typestr), sizeof text);
    const PlainTypestr& row = plain_typestrs[place_of_typestr(text)];
    return row.text == text ? row.traits : not_plain;
}

/// Reads a shape whose extents are at least 1, with strides of C order or without strides. Returns false for all
/// others. `bytes` is the size of an element on entry, and the size of the array on return.
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

/// True if `descr` is missing, None, or `[("", typestr)]`, which NumPy writes for elements without fields.
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
           traits_of(type) == traits_of(typestr);
}

}  // namespace detail

/// Reads a usual descriptor: a dict of tuples, ints of at most two digits (60 bits) and a typestr of numbers, in C
/// order, not empty, without a mask and fields, and valid. Returns false for all others, which read_descriptor must
/// read; `array` is then partly written. Stores the extents in `shape`, unless it is null. `keys` has the last
/// positions of the keys. Runs no Python code and allocates nothing.
[[gnu::always_inline]] inline bool read_plain_interface(PyObject* descriptor, KeyPlaces& keys,
                                                        PlainArray& array, Dimensions* shape) noexcept {
    if (!PyDict_CheckExact(descriptor)) return false;
    const py::scoped_critical_section undisturbed(descriptor);
    KeyValues found;
    if (!detail::find_values(entries_of(descriptor), keys, found)) [[unlikely]]
        found = detail::learn_values(descriptor, keys);
    const auto given = [&](unsigned key) { return found[key] == Py_None ? nullptr : found[key]; };

    PyObject* const pair = found[Key::data];
    if (pair == nullptr || !PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return false;
    array.pointer = static_cast<std::uint64_t>(short_positive(PyTuple_GET_ITEM(pair, 0)));
    PyObject* const readonly = PyTuple_GET_ITEM(pair, 1);
    if (array.pointer == 0 || (readonly != Py_True && readonly != Py_False)) return false;

    array.traits = detail::traits_of(found[Key::typestr]);
    if (array.traits == not_plain) return false;
    if (readonly == Py_True) array.traits |= bascule::detail::readonly_trait;
    std::int64_t bytes = plain_itemsize(array.traits);
    if (!detail::read_plain_shape(found[Key::shape], found[Key::strides], bytes, shape)) return false;
    array.bytes = static_cast<std::uint64_t>(bytes);

    const std::int64_t version = found[Key::version] == nullptr ? 0 : short_positive(found[Key::version]);
    if (version == 0 || version > 3) return false;
    array.version = static_cast<std::int32_t>(version);

    array.stream.handle = 0;
    if (PyObject* const value = given(Key::stream)) {
        array.stream.handle = static_cast<std::uint64_t>(short_positive(value));
        if (!array.stream) return false;
    }
    return given(Key::mask) == nullptr && detail::is_plain_descr(found[Key::descr], found[Key::typestr]);
}

}  // namespace bascule::python
