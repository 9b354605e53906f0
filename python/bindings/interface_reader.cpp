// Wrong Python types are found here; wrong values are left to bascule::validate. Source of the keys and their
// types: the CUDA Array Interface, versions 0, 2 and 3.
#include "interface_reader.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>

#include "descr.hpp"
#include "names.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

using Kind = ArgumentError::Kind;

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

std::string shown(PyObject* object) {
    PyObject* text = PyObject_Repr(object);
    if (text == nullptr) {
        PyErr_Clear();
        return fmt::format("<a {}>", type_name(object));
    }
    const py::object keep = py::reinterpret_steal<py::object>(text);
    const char* utf8 = PyUnicode_AsUTF8(text);
    if (utf8 == nullptr) {
        PyErr_Clear();
        return fmt::format("<a {}>", type_name(object));
    }
    return shortened(utf8);
}

[[noreturn]] void fail(Kind kind, const char* field, const std::string& expected, PyObject* got) {
    const std::string value = shown(got);
    const std::string name = type_name(got);
    throw ArgumentError(kind,
                        fmt::format("'{}' of __cuda_array_interface__ must be {}, got {}{}.", field, expected,
                                    value, name == "NoneType" ? "" : fmt::format(" ({})", name)),
                        {.field = field, .expected = expected, .got = value});
}

[[noreturn]] void fail_missing(const char* field) {
    throw ArgumentError(
        Kind::missing_key,
        fmt::format(
            "__cuda_array_interface__ has no '{}'. The interface requires 'shape', 'typestr', 'data' and "
            "'version'; this is for the array's library to mend.",
            field),
        {.field = field});
}

/// The integer as Python's own int; null when `object` is none. bool is no integer here.
py::object as_integer(PyObject* object) {
    if (PyLong_CheckExact(object)) return py::reinterpret_borrow<py::object>(object);
    if (PyBool_Check(object) || !PyIndex_Check(object)) return {};
    PyObject* integer = PyNumber_Index(object);
    if (integer == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
        PyErr_Clear();  // numpy.bool has __index__ and refuses
        return {};
    }
    return py::reinterpret_steal<py::object>(integer);
}

/// An int64; values outside are a value error.
std::int64_t read_int64(PyObject* object, const char* field, const char* expected) {
    int overflow = 0;
    if (PyLong_CheckExact(object)) {
        const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow == 0) return value;
    }
    const py::object integer = as_integer(object);
    if (!integer) fail(Kind::type, field, expected, object);
    const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow != 0) {
        fail(Kind::value, field, fmt::format("{} between -2**63 and 2**63 - 1", expected), object);
    }
    return value;
}

/// A uint64: a pointer or a handle.
std::uint64_t read_uint64(PyObject* object, const char* field, const std::string& expected) {
    const py::object integer = as_integer(object);
    if (!integer) fail(Kind::type, field, expected, object);
    const unsigned long long value = PyLong_AsUnsignedLongLong(integer.ptr());
    if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        fail(Kind::value, field, "at least 0 and below 2**64", object);
    }
    return value;
}

/// A tuple or list as a tuple: what is read cannot change meanwhile.
py::object as_tuple(PyObject* object, const char* field, const char* expected) {
    if (PyTuple_Check(object)) return py::reinterpret_borrow<py::object>(object);
    if (!PyList_Check(object)) fail(Kind::type, field, expected, object);
    PyObject* tuple = PyList_AsTuple(object);
    if (tuple == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(tuple);
}

void read_dimensions(PyObject* object, const char* field, Dimensions& out) {
    static constexpr const char* expected = "a tuple of integers";
    const py::object tuple = as_tuple(object, field, expected);
    const Py_ssize_t size = PyTuple_GET_SIZE(tuple.ptr());
    if (size > max_dimensions) {
        throw ArgumentError(Kind::value,
                            fmt::format("'{}' of __cuda_array_interface__ has {} dimensions; {} is the most.",
                                        field, size, max_dimensions),
                            {.field = field});
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
        out.push_back(read_int64(PyTuple_GET_ITEM(tuple.ptr(), i), field, expected));
    }
}

bool is_numpy_bool(PyObject* object) {
    const std::string name = type_name(object);
    return name == "numpy.bool" || name == "numpy.bool_";
}

bool read_readonly(PyObject* flag) {
    if (flag == Py_False) return false;
    if (flag == Py_True) return true;
    if (is_numpy_bool(flag)) return PyObject_IsTrue(flag) == 1;
    if (const py::object integer = as_integer(flag)) {
        const long value = PyLong_AsLong(integer.ptr());
        if (value == 0 || value == 1) return value == 1;
        PyErr_Clear();
    }
    fail(Kind::type, "data", "a pair of an address and a bool that tells whether the data is read-only",
         flag);
}

void read_data(PyObject* object, RawInterface& raw) {
    static constexpr const char* expected = "a pair (address, read-only flag)";
    const py::object pair = as_tuple(object, "data", expected);
    if (PyTuple_GET_SIZE(pair.ptr()) != 2) fail(Kind::value, "data", expected, object);
    PyObject* pointer = PyTuple_GET_ITEM(pair.ptr(), 0);
    if (pointer == Py_None) {
        raw.pointer_is_none = true;
    } else {
        raw.pointer = read_uint64(pointer, "data", "a pair whose first element is an integer address");
    }
    raw.readonly = read_readonly(PyTuple_GET_ITEM(pair.ptr(), 1));
}

void read_typestr(PyObject* object, InterfaceSnapshot& snapshot) {
    if (!PyUnicode_Check(object)) fail(Kind::type, "typestr", "a string such as \"<f4\"", object);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) {
        PyErr_Clear();  // lone surrogates
        fail(Kind::value, "typestr", "an ASCII string such as \"<f4\"", object);
    }
    snapshot.typestr = py::reinterpret_borrow<py::object>(object);
    snapshot.raw.typestr = {text, static_cast<std::size_t>(size)};
}

void read_stream(PyObject* object, RawInterface& raw) {
    raw.stream =
        read_uint64(object, "stream",
                    "None or an integer: 1, 2 or a stream handle (streams are integers in this version of "
                    "the interface; a later one may name an event)");
    raw.has_stream = true;
}

/// Strong references to the entries: later Python code cannot change what is parsed.
struct Entries {
    py::object shape, typestr, data, version, strides, mask, stream, descr;

    py::object* slot(PyObject* key) {
        const Names& n = names();
        if (key == n.shape) return &shape;
        if (key == n.typestr) return &typestr;
        if (key == n.data) return &data;
        if (key == n.version) return &version;
        if (key == n.strides) return &strides;
        if (key == n.mask) return &mask;
        if (key == n.stream) return &stream;
        if (key == n.descr) return &descr;
        return nullptr;
    }

    /// For keys that are equal strings without being interned.
    py::object* slot_by_value(PyObject* key) {
        const Names& n = names();
        if (!PyUnicode_Check(key)) return nullptr;
        for (PyObject* known :
             {n.shape, n.typestr, n.data, n.version, n.strides, n.mask, n.stream, n.descr}) {
            if (PyUnicode_Compare(key, known) == 0) return slot(known);
        }
        PyErr_Clear();
        return nullptr;
    }

    void walk(PyObject* dict) {
        PyObject* key = nullptr;
        PyObject* value = nullptr;
        Py_ssize_t position = 0;
        while (PyDict_Next(dict, &position, &key, &value) != 0) {
            py::object* entry = slot(key);
            if (entry == nullptr) entry = slot_by_value(key);
            if (entry != nullptr) *entry = py::reinterpret_borrow<py::object>(value);
        }
    }
};

}  // namespace

void read_descriptor(PyObject* descriptor, InterfaceSnapshot& snapshot) {
    Entries entries;
    if (PyDict_CheckExact(descriptor)) {
        entries.walk(descriptor);
    } else if (!PyList_Check(descriptor) && PyMapping_Check(descriptor) != 0 &&
               PyObject_HasAttrString(descriptor, "keys") != 0) {
        const py::dict copy = py::module_::import("builtins").attr("dict")(py::handle(descriptor));
        entries.walk(copy.ptr());
    } else {
        throw ArgumentError(Kind::type,
                            fmt::format("__cuda_array_interface__ must be a dict, got {} ({}).",
                                        shown(descriptor), type_name(descriptor)),
                            {.field = "__cuda_array_interface__"});
    }
    if (!entries.shape) fail_missing("shape");
    if (!entries.typestr) fail_missing("typestr");
    if (!entries.data) fail_missing("data");
    if (!entries.version) fail_missing("version");

    RawInterface& raw = snapshot.raw;
    raw.version = read_int64(entries.version.ptr(), "version", "an integer");
    read_dimensions(entries.shape.ptr(), "shape", raw.shape);
    read_typestr(entries.typestr.ptr(), snapshot);
    read_data(entries.data.ptr(), raw);
    if (entries.strides && !entries.strides.is_none()) {
        read_dimensions(entries.strides.ptr(), "strides", raw.strides);
        raw.has_strides = true;
    }
    if (entries.stream && !entries.stream.is_none()) read_stream(entries.stream.ptr(), raw);
    if (entries.descr && !entries.descr.is_none()) {
        snapshot.layout = read_descr(entries.descr.ptr(), raw.typestr);
    }
    if (entries.mask && !entries.mask.is_none()) snapshot.mask = std::move(entries.mask);
}

bool read_interface(PyObject* object, InterfaceSnapshot& snapshot) {
    PyObject* descriptor = PyObject_GetAttr(object, names().cuda_array_interface);
    if (descriptor == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::error_already_set();
        snapshot.absence = py::str(py::error_already_set().value());
        return false;
    }
    const py::object keep = py::reinterpret_steal<py::object>(descriptor);
    if (PyType_Check(object)) {
        throw ArgumentError(Kind::type,
                            fmt::format("got the class {}, not an array: pass an instance of it.",
                                        reinterpret_cast<PyTypeObject*>(object)->tp_name),
                            {.field = "__cuda_array_interface__"});
    }
    read_descriptor(descriptor, snapshot);
    return true;
}

}  // namespace bascule::python
