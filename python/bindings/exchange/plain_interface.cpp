#include "exchange/plain_interface.hpp"

namespace bascule::python::detail {
namespace {

/// The key's number; Key::count for any other key.
unsigned find_key(PyObject* key) noexcept {
    if (!PyUnicode_Check(key)) return Key::count;
    unsigned which = 0;
    while (which < Key::count && key != detail::key_names[which] &&
           !detail::is_same_text(key, detail::key_texts[which])) {
        ++which;
    }
    return which;
}

}  // namespace

KeyValues walk_values(PyObject* dict) noexcept {
    KeyValues values = {};
    walk_dict(dict, [&](PyObject* key, PyObject* value) {
        const unsigned which = find_key(key);
        if (which < Key::count) values[which] = value;
    });
    return values;
}

/// Remembers no positions for a dict that has other keys, too, or two equal keys (possible with a subclass of str).
KeyValues learn_values(PyObject* dict, KeyPlaces& keys) noexcept {
    keys.entries = 0;
    keys.places.fill(KeyPlaces::nowhere);
    const std::span<const DictEntry> entries = entries_of(dict);
    std::size_t known = 0;
    for (; known < entries.size(); ++known) {
        const unsigned which = entries[known].value == nullptr ? +Key::count : find_key(entries[known].key);
        if (which == Key::count || keys.places[which] != KeyPlaces::nowhere) break;
        keys.places[which] = static_cast<std::uint8_t>(known);
    }
    if (known == entries.size()) keys.entries = static_cast<std::uint8_t>(known);
    return walk_values(dict);
}

}  // namespace bascule::python::detail
