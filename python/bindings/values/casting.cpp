#include "values/casting.hpp"

#include <string>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

#include "values/dtype_object.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// Whether the dtype's kind is one of these letters of NumPy's.
bool has_kind(const py::object& dtype, std::string_view kinds) {
    return kinds.find(std::string(py::str(dtype.attr("kind")))) != std::string_view::npos;
}

constexpr std::string_view numbers = "biufc";
constexpr std::string_view integers = "biu";

bool is_array(const py::object& values) {
    return py::isinstance(values, numpy().attr("ndarray")) && py::len(values.attr("shape")) > 0;
}

}  // namespace

void require_same_kind(const py::object& from, const py::object& to) {
    if (!has_kind(from, numbers) || !has_kind(to, numbers)) return;
    if (numpy().attr("can_cast")(from, to, "same_kind").cast<bool>()) return;
    const std::string given = py::str(from);
    const std::string wanted = py::str(to);
    throw ArgumentError(ArgumentError::Kind::type,
                        fmt::format("cannot assign {} values to {} elements: the casting rule is "
                                    "'same_kind', as for numpy.copyto. Convert the values first, for example "
                                    "with .astype(\"{}\").",
                                    given, wanted, wanted),
                        {.field = "value", .expected = wanted, .got = given});
}

py::object cast_values(const py::object& values, const py::object& dtype) {
    const py::object library = numpy();
    if (!has_kind(dtype, numbers)) {
        return is_array(values) ? values : py::object(library.attr("asarray")(values, "dtype"_a = dtype));
    }
    const py::object given = library.attr("asarray")(values);
    const py::object from = given.attr("dtype");
    if (has_kind(from, integers) && has_kind(dtype, integers) && !is_array(values)) {
        return library.attr("array")(given.attr("tolist")(), "dtype"_a = dtype);
    }
    require_same_kind(from, dtype);
    return library.attr("asarray")(given, "dtype"_a = dtype);
}

}  // namespace bascule::python
