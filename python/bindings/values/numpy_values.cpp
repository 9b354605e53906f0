#include "values/numpy_values.hpp"

#include <cstdint>
#include <string>

#include <bascule/interface/errors/rejection.hpp>

#include "exchange/interface_reader.hpp"
#include "support/integers.hpp"
#include "support/safe_repr.hpp"
#include "values/dtype_object.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {

py::tuple to_tuple(const Dimensions& dimensions) {
    py::tuple tuple(dimensions.size());
    for (int d = 0; d < dimensions.size(); ++d) tuple[static_cast<std::size_t>(d)] = py::int_(dimensions[d]);
    return tuple;
}

Dimensions to_integers(const py::object& numbers, const char* field) {
    const py::tuple tuple(numbers);
    if (tuple.size() > max_dimensions) {
        reject_field(ErrorKind::value, field, "`{}` has {} entries, and an array has at most {} dimensions.",
                     field, tuple.size(), max_dimensions);
    }
    Dimensions result;
    for (const py::handle number : tuple) {
        if (PyIndex_Check(number.ptr()) == 0) {
            const std::string got = safe_repr(number.ptr());
            reject(ErrorKind::type, {.field = field, .expected = "an int or a tuple of ints", .got = got},
                   "`{}` must be an int or a tuple of ints, got {} ({}).", field, got,
                   Py_TYPE(number.ptr())->tp_name);
        }
        const py::object integer = to_int(number);
        const long long value = PyLong_AsLongLong(integer.ptr());
        if (value == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            reject_field(ErrorKind::overflow, field, "`{}` has {}, which does not fit 64 bits.", field,
                         std::string(py::str(integer)));
        }
        result.push_back(value);
    }
    return result;
}

Dimensions to_shape(const py::object& shape) {
    const bool several = py::isinstance<py::tuple>(shape) || py::isinstance<py::list>(shape);
    Dimensions extents = to_integers(several ? shape : py::object(py::make_tuple(shape)), "shape");
    for (const std::int64_t extent : extents) {
        if (extent >= 0) continue;
        reject(ErrorKind::value, {.field = "shape", .got = bascule::to_string(extents)},
               "`shape` is {}: an extent cannot be negative.", bascule::to_string(extents));
    }
    return extents;
}

py::object numpy_dtype(const ArrayView& view) {
    if (view.layout != nullptr) return structured_dtype(*view.layout);
    return numpy_dtype(view.dtype);
}

py::object as_opaque(const py::object& values, const py::object& dtype, const Dimensions& shape) {
    const py::object library = numpy();
    const auto is_opaque = [opaque = py::object(library.attr("void"))](const py::object& type) {
        return py::object(type.attr("type")).is(opaque);
    };
    if (!is_opaque(dtype) || !dtype.attr("names").is_none()) return values;
    const auto itemsize = dtype.attr("itemsize").cast<std::uint64_t>();
    const auto fail = [&](const std::string& wanted, const std::string& got) {
        reject(ErrorKind::value, {.field = "values", .expected = wanted, .got = got},
               "a value for an array of shape {} and dtype {} must be {}, got {}.", bascule::to_string(shape),
               std::string(py::str(dtype)), wanted, got);
    };
    if (py::isinstance(values, library.attr("ndarray"))) {
        const py::object given = values.attr("dtype");
        if (!is_opaque(given) || given.attr("itemsize").cast<std::uint64_t>() != itemsize) {
            fail(fmt::format("structured or opaque, with {} bytes per element", itemsize),
                 fmt::format("dtype {}", std::string(py::str(given))));
        }
        return values.attr("view")(dtype);
    }
    if (PyObject_CheckBuffer(values.ptr()) == 0) return values;
    const py::object memory = owned(PyMemoryView_FromObject(values.ptr()));
    std::uint64_t wanted = itemsize;
    for (const std::int64_t extent : shape) wanted *= static_cast<std::uint64_t>(extent);
    const auto got = memory.attr("nbytes").cast<std::uint64_t>();
    if (got != wanted) fail(fmt::format("{} bytes", wanted), fmt::format("{}", got));
    return library.attr("ndarray")(to_tuple(shape), dtype, memory.attr("tobytes")());
}

ArrayView host_view(const py::object& array) {
    // These name the dtype, where the rules of the interface would name its keys. They know the ml_dtypes
    // formats, too, which typestr and descr do not.
    const DType dtype = dtype_of(array.attr("dtype"));
    const std::shared_ptr<const StructLayout> layout = numpy_layout(array.attr("dtype"));
    const py::dict fields = array.attr("__array_interface__");
    py::dict copy;
    for (const char* key : {"shape", "typestr", "data", "strides", "descr"}) copy[key] = fields[key];
    copy["version"] = 3;
    InterfaceSnapshot snapshot;
    read_descriptor(copy.ptr(), snapshot);
    ArrayView view = validate(snapshot.raw);
    view.dtype = dtype;
    view.layout = layout;
    return view;
}

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
    reject(ErrorKind::type, {.field = "value", .expected = wanted, .got = given},
           "cannot assign {} values to {} elements: the casting rule is 'same_kind', as for numpy.copyto. "
           "Convert the values first, for example with .astype(\"{}\").",
           given, wanted, wanted);
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
