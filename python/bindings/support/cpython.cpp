#include "support/cpython.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bascule::python {
namespace {

bool knows_ints() {
    constexpr std::int64_t two_digits = std::int64_t{1} << PyLong_SHIFT;
    constexpr std::int64_t three_digits = two_digits << PyLong_SHIFT;
    for (const std::int64_t size :
         {std::int64_t{0}, std::int64_t{1}, two_digits - 1, two_digits, three_digits - 1, three_digits}) {
        for (const std::int64_t value : {size, -size}) {
            const py::int_ number(value);
            const bool is_short = size < three_digits;
            if (short_integer(number.ptr()) != (is_short ? std::optional(value) : std::nullopt)) return false;
            if (short_positive(number.ptr()) != (is_short ? std::max<std::int64_t>(value, 0) : 0))
                return false;
            if (one_digit(number.ptr()) != (value > 0 && value < two_digits ? value : 0)) return false;
        }
    }
    return true;
}

bool knows_texts() {
    const py::str text("shape");
    return PyUnicode_IS_COMPACT_ASCII(text.ptr()) &&
           ascii_characters(text.ptr()) == std::string_view("shape");
}

/// Checks that a change of a class changes its version tag, and that class_attribute finds both values.
bool knows_types() {
    const py::handle metaclass(reinterpret_cast<PyObject*>(&PyType_Type));
    const py::object made = metaclass("Made", py::tuple(), py::dict());
    auto* const type = reinterpret_cast<PyTypeObject*>(made.ptr());
    const py::str name("shape");
    unsigned int before = 0;
    for (const int value : {1, 2}) {
        made.attr(name) = value;
        if (before != 0 && version_tag(type) == before) return false;
        const py::object found = class_attribute(type, name.ptr());
        if (!found || !found.equal(py::int_(value))) return false;
        before = version_tag(type);
    }
    return true;
}

/// Compares the known layout with PyDict_Next, for a dict with a removed entry.
void learn_dicts() {
#ifdef BASCULE_KNOWS_DICTS
    py::dict dict;
    for (const char* key : {"shape", "typestr", "removed", "data", "version", "strides", "stream"})
        dict[key] = py::none();
    if (PyDict_DelItemString(dict.ptr(), "removed") != 0) throw py::error_already_set();
    const auto* object = reinterpret_cast<const PyDictObject*>(dict.ptr());
    const auto* table = reinterpret_cast<const detail::DictTable*>(object->ma_keys);
    // If these fields have other values, the layout is not the known one, and the entries are not read.
    if (object->ma_values != nullptr || table->kind != detail::DictTable::all_strings ||
        table->log2_slots != 4 || table->log2_index_bytes != 4 || table->entries != 7) {
        return;
    }
    const auto walk = [&] {
        std::vector<std::pair<PyObject*, PyObject*>> found;
        walk_dict(dict.ptr(), [&](PyObject* key, PyObject* value) { found.emplace_back(key, value); });
        return found;
    };
    detail::knows_dicts = false;
    const auto by_next = walk();
    detail::knows_dicts = true;
    detail::knows_dicts = walk() == by_next;
#endif
}

}  // namespace

void check_cpython() {
    learn_dicts();
    if (knows_ints() && knows_texts() && knows_types()) return;
    throw py::import_error(
        fmt::format("this build of Bascule does not know how Python {} keeps its objects in memory: build it "
                    "with that Python, or use a newer Bascule.",
                    Py_GetVersion()));
}

}  // namespace bascule::python
