// Wrong Python types are found here; wrong values are left to bascule::validate. Source of the keys and their
// types: the CUDA Array Interface, versions 0, 2 and 3.
#include "exchange/interface_reader.hpp"

#include <atomic>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "exchange/descr.hpp"
#include "exchange/plain_interface.hpp"
#include "parts.hpp"
#include "support/integers.hpp"
#include "support/names.hpp"
#include "support/stack_room.hpp"

namespace bascule::python {
namespace {

// --- Errors ------------------------------------------------------------------------------------------------

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

[[noreturn]] void fail(ErrorKind kind, const char* field, const std::string& expected, PyObject* got) {
    const std::string value = safe_repr(got);
    const std::string name = type_name(got);
    reject(kind, {.field = field, .expected = expected, .got = value},
           "'{}' of __cuda_array_interface__ must be {}, got {}{}.", field, expected, value,
           name == "NoneType" ? "" : fmt::format(" ({})", name));
}

// --- Integers ----------------------------------------------------------------------------------------------

/// The name and the expected value of a field of integers, for messages.
struct IntegerField {
    const char* name;
    const char* expected;
};

constexpr IntegerField version_field = {"version", "an integer"};
constexpr IntegerField extent_field = {"shape", "a tuple of integers"};
constexpr IntegerField stride_field = {"strides", "None or a tuple of integers"};
constexpr IntegerField pointer_field = {"data", "a pair whose first element is an integer address"};
constexpr IntegerField stream_field = {"stream",
                                       "None or an integer: 1, 2 or a stream handle (streams are integers in "
                                       "this version of the interface; a later one may name an event)"};

bool is_numpy_bool(PyObject* object) {
    const std::string_view name = Py_TYPE(object)->tp_name;
    return name == "numpy.bool" || name == "numpy.bool_";
}

/// Converts an integer to a Python int. Null for other objects; a bool does not count as an integer.
py::object as_integer(PyObject* object) {
    if (PyLong_CheckExact(object)) return py::reinterpret_borrow<py::object>(object);
    return is_numpy_bool(object) ? py::object() : try_int(object);
}

std::int64_t read_int64(PyObject* object, const IntegerField& field) {
    const py::object integer = as_integer(object);
    if (!integer) fail(ErrorKind::type, field.name, field.expected, object);
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow != 0) {
        fail(ErrorKind::value, field.name, fmt::format("{} between -2**63 and 2**63 - 1", field.expected),
             object);
    }
    return value;
}

/// Reads a pointer or a handle.
std::uint64_t read_uint64(PyObject* object, const IntegerField& field) {
    const py::object integer = as_integer(object);
    if (!integer) fail(ErrorKind::type, field.name, field.expected, object);
    if (const auto value = to_uint64(integer)) return *value;
    fail(ErrorKind::value, field.name, fmt::format("{}, at least 0 and below 2**64", field.expected), object);
}

// --- Fields ------------------------------------------------------------------------------------------------

/// Converts a tuple or list to a tuple, which cannot change while it is read. Refuses objects of a subclass whose
/// `__len__` differs from the number of elements, because it is unclear which elements are meant.
py::object as_tuple(PyObject* object, const char* field, const char* expected) {
    py::object tuple;
    if (PyTuple_Check(object)) {
        tuple = py::reinterpret_borrow<py::object>(object);
    } else if (PyList_Check(object)) {
        tuple = owned(PyList_AsTuple(object));
    } else {
        fail(ErrorKind::type, field, expected, object);
    }
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) return tuple;
    const Py_ssize_t said = PyObject_Size(object);
    if (said < 0) throw py::error_already_set();
    if (said != PyTuple_GET_SIZE(tuple.ptr())) {
        fail(ErrorKind::type, field, fmt::format("{} whose __len__ is true", expected), object);
    }
    return tuple;
}

void read_dimensions(PyObject* object, const IntegerField& field, Dimensions& out) {
    const py::object tuple = as_tuple(object, field.name, field.expected);
    const Py_ssize_t size = PyTuple_GET_SIZE(tuple.ptr());
    if (size > max_dimensions) {
        reject(ErrorKind::value, {.field = field.name, .got = std::to_string(size)},
               "'{}' of __cuda_array_interface__ has {} dimensions; {} is the most. Reshape it.", field.name,
               size, max_dimensions);
    }
    for (Py_ssize_t i = 0; i < size; ++i) out.push_back(read_int64(PyTuple_GET_ITEM(tuple.ptr(), i), field));
}

bool read_readonly(PyObject* flag) {
    if (flag == Py_False) return false;
    if (flag == Py_True) return true;
    if (is_numpy_bool(flag)) return PyObject_IsTrue(flag) == 1;
    if (const py::object integer = as_integer(flag)) {
        int overflow = 0;
        const long value = PyLong_AsLongAndOverflow(integer.ptr(), &overflow);
        if (overflow == 0 && (value == 0 || value == 1)) return value == 1;
    }
    fail(ErrorKind::type, "data", "a pair of an address and a bool that tells whether the data is read-only",
         flag);
}

void read_data(PyObject* object, RawInterface& raw) {
    static constexpr const char* expected = "a pair (address, read-only flag)";
    const py::object pair = as_tuple(object, "data", expected);
    if (PyTuple_GET_SIZE(pair.ptr()) != 2) fail(ErrorKind::value, "data", expected, object);
    PyObject* const pointer = PyTuple_GET_ITEM(pair.ptr(), 0);
    raw.pointer_is_none = pointer == Py_None;
    if (!raw.pointer_is_none) raw.pointer = read_uint64(pointer, pointer_field);
    raw.readonly = read_readonly(PyTuple_GET_ITEM(pair.ptr(), 1));
}

/// The result borrows from `object`.
std::string_view read_typestr(PyObject* object) {
    if (!PyUnicode_Check(object)) fail(ErrorKind::type, "typestr", "a string such as \"<f4\"", object);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) {
        PyErr_Clear();  // lone surrogates
        fail(ErrorKind::value, "typestr", "an ASCII string such as \"<f4\"", object);
    }
    return {text, static_cast<std::size_t>(size)};
}

// --- The walk ----------------------------------------------------------------------------------------------

/// References to the values of a descriptor. One walk, which runs no Python code, finds and keeps them, so that code
/// that runs later or in another thread cannot change what is parsed.
class Entries {
  public:
    Entries() = default;
    Entries(Entries&&) = delete;
    ~Entries() {
        for (PyObject* value : values_) Py_XDECREF(value);
    }

    void walk(PyObject* dict) noexcept {
        const py::scoped_critical_section undisturbed(dict);
        values_ = detail::walk_values(dict);
        for (PyObject* found : values_) Py_XINCREF(found);
    }

    /// A borrowed reference. Throws: ArgumentError if the key is missing.
    PyObject* required(unsigned key) const {
        if (values_[key] != nullptr) return values_[key];
        const std::string field = py::str(py::handle(detail::key_names[key]));
        reject_field(ErrorKind::missing_key, field,
                     "__cuda_array_interface__ has no '{}'. The interface requires 'shape', 'typestr', "
                     "'data' and 'version'; this is a bug in the producing library.",
                     field);
    }
    /// A borrowed reference; null if the key is missing, and for None.
    PyObject* given(unsigned key) const noexcept { return values_[key] == Py_None ? nullptr : values_[key]; }

  private:
    KeyValues values_ = {};
};

/// Reads `mapping[key]` once for each key, as other readers do. (`dict(mapping)` would bypass the `__getitem__` of a
/// dict subclass.) Also asks for required keys that are not listed, because `__missing__` may provide them.
py::dict copy_of_mapping(PyObject* mapping) {
    py::dict copy;
    const auto read = [&](PyObject* key) {
        return py::reinterpret_steal<py::object>(into_python([&] { return PyObject_GetItem(mapping, key); }));
    };
    for (const py::handle key : owned(into_python([&] { return PyMapping_Keys(mapping); }))) {
        const py::object value = read(key.ptr());
        if (!value) throw py::error_already_set();
        copy[key] = value;
    }
    for (unsigned required : {Key::shape, Key::typestr, Key::data, Key::version}) {
        const py::handle key = detail::key_names[required];
        if (copy.contains(key)) continue;
        if (const py::object value = read(key.ptr())) {
            copy[key] = value;
        } else {
            if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) throw py::error_already_set();
            PyErr_Clear();
        }
    }
    return copy;
}

/// Reads the entries of a dict or of another mapping. Throws: ArgumentError for other objects.
void take_entries(PyObject* descriptor, Entries& entries) {
    if (PyDict_CheckExact(descriptor)) [[likely]]
        return entries.walk(descriptor);
    if (!PyList_Check(descriptor) && PyMapping_Check(descriptor) != 0 && !PyType_Check(descriptor)) {
        if (find_attribute(descriptor, py::str("keys").ptr()))
            return entries.walk(copy_of_mapping(descriptor).ptr());
    }
    reject(ErrorKind::type,
           {.field = "__cuda_array_interface__", .expected = "a dict", .got = safe_repr(descriptor)},
           "__cuda_array_interface__ must be a dict, got {} ({}).", safe_repr(descriptor),
           type_name(descriptor));
}

std::atomic<bool> accept_newer{false};

DescribedArray read_fields(PyObject* descriptor) {
    Entries entries;
    take_entries(descriptor, entries);
    RawInterface raw;
    raw.version = read_int64(entries.required(Key::version), version_field);
    raw.accept_newer = accept_newer.load(std::memory_order_relaxed);
    read_dimensions(entries.required(Key::shape), extent_field, raw.shape);
    raw.typestr = read_typestr(entries.required(Key::typestr));
    read_data(entries.required(Key::data), raw);
    if (PyObject* strides = entries.given(Key::strides)) {
        read_dimensions(strides, stride_field, raw.strides);
        raw.has_strides = true;
    }
    if (PyObject* stream = entries.given(Key::stream)) {
        raw.stream = read_uint64(stream, stream_field);
    }
    PyObject* const descr = entries.given(Key::descr);
    auto layout = descr != nullptr ? read_descr(descr, raw.typestr) : nullptr;
    DescribedArray array{validate(raw), py::reinterpret_borrow<py::object>(entries.given(Key::mask))};
    array.view.layout = std::move(layout);
    return array;
}

}  // namespace

DescribedArray read_descriptor(PyObject* descriptor, PyTypeObject* producer) {
    PlainArray plain;
    Dimensions shape;
    if (read_plain_interface(descriptor, key_places_of(producer), plain, &shape))
        return {view_of(plain, shape)};
    return read_fields(descriptor);
}

std::string take_absence() {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::error_already_set();
    const py::error_already_set error;
    std::string words = escaped(py::str(error.value()).ptr());
    // Python itself says that there is no such attribute.
    return words.ends_with("has no attribute '__cuda_array_interface__'") ? std::string() : words;
}

PyObject* detail::get_interface_by_name(PyObject* object) {
    auto descriptor = py::reinterpret_steal<py::object>(
        into_python([&] { return PyObject_GetAttr(object, names().cuda_array_interface); }));
    if (descriptor && PyType_Check(object)) {
        reject_field(ErrorKind::type, "__cuda_array_interface__",
                     "got the class {}, not an array: pass an instance of it.",
                     reinterpret_cast<PyTypeObject*>(object)->tp_name);
    }
    return descriptor.release().ptr();
}

py::object get_interface(PyObject* object, PyObject* getter, std::string& absence) {
    require_stack(&absence);
    auto descriptor = py::reinterpret_steal<py::object>(call_interface(object, getter));
    if (!descriptor) absence = take_absence();
    return descriptor;
}

std::optional<DescribedArray> read_interface(PyObject* object, std::string& absence) {
    PyTypeObject* const type = Py_TYPE(object);
    const py::object descriptor = get_interface(object, profile_of(type).interface, absence);
    if (!descriptor) return std::nullopt;
    return read_descriptor(descriptor.ptr(), type);
}

void bind_interface_reader(py::module_& module) {
    const Names& n = names();
    detail::key_names = {n.shape, n.typestr, n.data, n.version, n.strides, n.mask, n.stream, n.descr};
    module.def(
        "_accept_newer_interface", [](bool accept) { accept_newer.store(accept); },
        py::arg("accept").noconvert());
    module.def("_check_memory", &check_memory, py::arg("on").noconvert());
    module.def(
        "_parse",
        [](const py::object& descriptor, std::size_t times, bool fast) {
            std::string text;
            for (std::size_t i = 0; i < times; ++i) {
                const ArrayView view = fast
                                           ? read_descriptor(descriptor.ptr(), Py_TYPE(descriptor.ptr())).view
                                           : read_fields(descriptor.ptr()).view;
                if (i + 1 < times) continue;
                text = fmt::format("{}, strides {}, at {:#x}, version {}, stream {} {}, {}{}", describe(view),
                                   to_string(view.strides), view.pointer, view.version,
                                   static_cast<bool>(view.stream), view.stream.handle,
                                   view.c_contiguous ? "C" : "", view.f_contiguous ? "F" : "");
            }
            return text;
        },
        "descriptor"_a, "times"_a = 1, "fast"_a = true,
        "For tests and benchmarks: parses and checks a descriptor as a launch does, or, not `fast`, by "
        "the general path at once; says what it is.");
}

}  // namespace bascule::python
