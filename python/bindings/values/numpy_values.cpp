#include "values/numpy_values.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/interface/types/struct_source.hpp>

#include "exchange/interface_reader.hpp"
#include "parts.hpp"
#include "support/integers.hpp"

namespace bascule::python {
namespace {

constexpr int deepest = 64;  // maximum nesting of structures

bool has_fields(const py::object& dtype) {
    return !dtype.attr("names").is_none() && py::len(dtype.attr("names")) > 0;
}

std::vector<StructField> fields_of(const py::object& dtype, const std::string& path, int depth);

/// Throws an error whose sentence begins with `subject`: "the dtype is".
[[noreturn]] void refuse_dtype(const py::object& dtype, const std::string& subject,
                               const std::string& field) {
    const std::string name = py::str(dtype);
    const std::string kind = py::str(dtype.attr("kind"));
    const bool is_text = kind == "O" || kind == "S" || kind == "U" || kind == "T";
    std::string why = "devices have no such type: use numbers of 1 to 8 bytes, or complex ones of up to 16";
    if (is_text) why = "devices have no Python objects and strings: use numbers, or bytes ('V8')";
    if (!dtype.attr("isnative").cast<bool>()) {
        const std::string native = py::str(dtype.attr("newbyteorder")("=").attr("str"));
        why = fmt::format("devices are little-endian: convert the array first, x.astype('{}')", native);
    }
    reject(is_text ? ErrorKind::type : ErrorKind::value, {.field = field, .got = name}, "{} {}, and {}.",
           subject, shortened(name), why);
}

/// Empty if devices do not support the type. Structures become opaque bytes.
std::optional<DType> find_dtype(const py::object& dtype) {
    DType plain;
    try {
        plain = parse_typestr(std::string(py::str(dtype.attr("str"))));
    } catch (const ArgumentError&) {
        return std::nullopt;
    }
    if (plain.kind != DType::Kind::opaque || has_fields(dtype)) return plain;
    // A typestr does not distinguish ml_dtypes' types from bytes, but the scalar type does.
    const py::object module = py::getattr(dtype.attr("type"), "__module__", py::none());
    if (!py::isinstance<py::str>(module) || std::string(py::str(module)) != "ml_dtypes") return plain;
    return dtype_named(std::string(py::str(dtype.attr("name")))).value_or(plain);
}

DType element_of(const py::object& dtype, const std::string& path) {
    if (const auto known = find_dtype(dtype)) return *known;
    refuse_dtype(dtype, fmt::format("field '{}' has the dtype", shortened(path)), path);
}

StructField field_of(const py::handle& name, const py::tuple& description, const std::string& path,
                     int depth) {
    StructField field;
    field.name = py::str(name);
    field.offset = description[1].cast<std::uint32_t>();
    py::object element = description[0];
    if (!element.attr("subdtype").is_none()) {
        const py::tuple base = element.attr("subdtype");
        for (const py::handle extent : py::tuple(base[1])) field.shape.push_back(extent.cast<std::int64_t>());
        element = base[0];
    }
    const std::string inner = path + field.name;
    if (has_fields(element)) {
        field.nested = fields_of(element, inner + ".", depth + 1);
        field.dtype = {DType::Kind::opaque, element.attr("itemsize").cast<std::uint32_t>()};
    } else {
        field.dtype = element_of(element, inner);
    }
    return field;
}

/// Returns the fields in the dtype's order. `path` is the prefix of names in messages.
std::vector<StructField> fields_of(const py::object& dtype, const std::string& path, int depth) {
    if (depth > deepest) {
        reject_field(ErrorKind::value, "dtype", "the dtype nests structures more than {} deep.", deepest);
    }
    std::vector<StructField> fields;
    const py::object descriptions = dtype.attr("fields");
    for (const py::handle name : dtype.attr("names")) {
        fields.push_back(field_of(name, py::tuple(descriptions[name]), path, depth));
    }
    return fields;
}

bool is_in_order(const std::vector<StructField>& fields) {
    std::uint64_t end = 0;
    for (const StructField& field : fields) {
        if (field.offset < end || !is_in_order(field.nested)) return false;
        end = field.offset + field.bytes();
    }
    return true;
}

/// Whether a ctypes type is a pointer: `_type_` is a letter for a pointer, or the pointee's type.
bool is_ctypes_pointer(const py::handle& type) {
    const py::object pointee = py::getattr(type, "_type_", py::none());
    if (!py::isinstance<py::str>(pointee)) return !pointee.is_none() || py::hasattr(type, "_restype_");
    return std::string_view("PzZO").find(pointee.cast<std::string>()) != std::string_view::npos;
}

/// The format of a ctypes structure's field for numpy.dtype.
py::object format_of_ctypes(const py::handle& type) {
    if (py::hasattr(type, "_length_"))
        return numpy().attr("dtype")(
            py::make_tuple(format_of_ctypes(type.attr("_type_")), type.attr("_length_")));
    if (py::hasattr(type, "_fields_")) return ctypes_dtype(type);
    if (is_ctypes_pointer(type)) return numpy().attr("dtype")("u8");
    const bool is_char = py::str("c").equal(py::getattr(type, "_type_", py::none()));
    return numpy().attr("dtype")(is_char ? py::object(py::str("i1"))
                                         : py::reinterpret_borrow<py::object>(type));
}

std::string struct_text(const py::object& given, const std::string& name) {
    const py::object dtype = numpy().attr("dtype")(given);
    StructLayout layout;
    layout.bytes = dtype.attr("itemsize").cast<std::uint32_t>();
    if (has_fields(dtype)) layout.fields = fields_of(dtype, "", 0);
    return struct_source(layout, name);
}

}  // namespace

py::object numpy() { return py::module_::import("numpy"); }

py::object to_dtype(const py::object& given) {
    try {
        return numpy().attr("dtype")(given);
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) throw;
    }
    const bool is_name = py::isinstance<py::str>(given);
    const bool is_format = is_name && dtype_named(given.cast<std::string>()).has_value();
    if (is_format) {
        try {
            return numpy().attr("dtype")(py::module_::import("ml_dtypes").attr(given));
        } catch (const py::error_already_set& error) {
            if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
        }
    }
    const std::string got = safe_repr(given.ptr());
    reject(ErrorKind::type, {.field = "dtype", .got = got},
           "`dtype` is {}, which NumPy does not take as a dtype{}.", got,
           is_format                   ? ": it is a type of ml_dtypes; pip install ml_dtypes"
           : PyLong_Check(given.ptr()) ? ": extents of several axes are one tuple, such as zeros((3, 4))"
                                       : ": pass \"f4\", numpy.float32 and the like");
}

py::object ctypes_dtype(const py::handle& type) {
    py::list names;
    py::list formats;
    py::list offsets;
    const py::tuple bases = type.attr("__mro__");  // fields of a base come first
    for (std::size_t i = bases.size(); i-- > 0;) {
        const py::object own = bases[i].attr("__dict__").attr("get")("_fields_", py::tuple());
        for (const py::handle given : own) {
            const py::tuple field = py::reinterpret_borrow<py::object>(given);
            if (field.size() > 2) {
                reject(
                    ErrorKind::type,
                    "field '{}' of the ctypes structure is a bit-field of {} bits, which cannot be compared with "
                    "the kernel's struct. Pass bascule.raw_bytes(x), of which the size alone is compared.",
                    std::string(py::str(field[0])), std::string(py::str(field[2])));
            }
            names.append(field[0]);
            formats.append(format_of_ctypes(field[1]));
            offsets.append(type.attr(py::str(field[0])).attr("offset"));
        }
    }
    return numpy().attr("dtype")(py::dict("names"_a = names, "formats"_a = formats, "offsets"_a = offsets,
                                          "itemsize"_a = py::module_::import("ctypes").attr("sizeof")(type)));
}

DType dtype_of(const py::object& dtype) {
    if (const auto known = find_dtype(dtype)) return *known;
    refuse_dtype(dtype, "the dtype is", "dtype");
}

std::shared_ptr<const StructLayout> numpy_layout(const py::object& dtype) {
    if (!has_fields(dtype)) return nullptr;
    StructLayout layout{dtype.attr("itemsize").cast<std::uint32_t>(), fields_of(dtype, "", 0)};
    if (!is_in_order(layout.fields)) return nullptr;
    return std::make_shared<const StructLayout>(std::move(layout));
}

py::object numpy_dtype(DType dtype) {
    if (dtype.format == DType::Format::none) return numpy().attr("dtype")(to_typestr(dtype));
    try {
        const py::module_ types = py::module_::import("ml_dtypes");
        return numpy().attr("dtype")(types.attr(to_string(dtype).c_str()));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
        return numpy().attr("dtype")(fmt::format("V{}", dtype.itemsize));
    }
}

py::object structured_dtype(const StructLayout& layout) {
    py::list names;
    py::list formats;
    py::list offsets;
    for (const StructField& field : layout.fields) {
        const py::object format = field.nested.empty()
                                      ? numpy_dtype(field.dtype)
                                      : structured_dtype({field.dtype.itemsize, field.nested});
        py::tuple shape(field.shape.size());
        for (std::size_t d = 0; d < field.shape.size(); ++d) shape[d] = py::int_(field.shape[d]);
        names.append(field.name);
        formats.append(field.shape.empty() ? format : py::object(py::make_tuple(format, shape)));
        offsets.append(field.offset);
    }
    const py::dict description("names"_a = names, "formats"_a = formats, "offsets"_a = offsets,
                               "itemsize"_a = layout.bytes);
    return numpy().attr("dtype")(description);
}

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
        const py::object integer = PyBool_Check(number.ptr()) ? to_int(number) : try_int(number);
        if (!integer) {
            const std::string got = safe_repr(number.ptr());
            reject(ErrorKind::type, {.field = field, .expected = "an int or a tuple of ints", .got = got},
                   "`{}` must be an int or a tuple of ints, got {} ({}).", field, got,
                   Py_TYPE(number.ptr())->tp_name);
        }
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
    Dimensions extents = to_integers(is_several(shape) ? shape : py::object(py::make_tuple(shape)), "shape");
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

void* host_address_of(const py::object& array) {
    return reinterpret_cast<void*>(array.attr("ctypes").attr("data").cast<std::uintptr_t>());
}

ArrayView host_view(const py::object& array) {
    // These functions name the dtype in errors, where the interface's rules would name its keys. They also know the
    // ml_dtypes formats, which typestr and descr do not contain.
    const DType dtype = dtype_of(array.attr("dtype"));
    const std::shared_ptr<const StructLayout> layout = numpy_layout(array.attr("dtype"));
    const py::dict fields = array.attr("__array_interface__");
    py::dict copy;
    for (const char* key : {"shape", "typestr", "data", "strides", "descr"}) copy[key] = fields[key];
    copy["version"] = 3;
    ArrayView view = read_descriptor(copy.ptr(), &PyDict_Type).view;
    view.dtype = dtype;
    view.layout = layout;
    return view;
}

namespace {

/// Whether the dtype's kind is one of these letters of NumPy.
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

void bind_dtypes(py::module_& module) {
    module.def("struct", &struct_text, "dtype"_a, "name"_a = "Record",
               R"(The CUDA C++ struct of a NumPy structured dtype.

Its fields have the same offsets as in NumPy, which static_asserts in the text check. Put the text before the kernels that use it. Nested
structures become structs of their own (`Record_position`). If NumPy's fields are not aligned as C++ requires, the struct is packed: its
numbers are read and written as usual, but pointers and references to them are not allowed; a half or complex number that may be
unaligned is a `bascule::unaligned<T>`, which converts to T and is assigned from T.

Parameters
----------
dtype : numpy.dtype with fields, or anything numpy.dtype takes
name : str, the name of the struct

Returns
-------
str

Raises
------
ArgumentError
    A field that C++ cannot have: an object or a string, overlapping fields, a name that is not an identifier.

Examples
--------
>>> particle = np.dtype([("mass", "f4"), ("position", "f8", (3,))], align=True)
>>> source = bascule.struct(particle, "Particle") + "__global__ void fall(Particle* p) { p->position[2] -= p->mass; }"
>>> bascule.compile(source).fall[1, 1](bascule.to_device(np.zeros(1, particle)))
)");
}

}  // namespace bascule::python
