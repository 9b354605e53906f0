#include "exchange/numba_arrays.hpp"

#include "exchange/plain_interface.hpp"
#include "support/names.hpp"

namespace bascule::python {
namespace {

/// Reads an attribute. Null, with Python's error set, if that raises.
py::object attribute(PyObject* object, PyObject* name) {
    return py::reinterpret_steal<py::object>(into_python([&] { return PyObject_GetAttr(object, name); }));
}

/// `int(object)`. Null, with Python's error set, if that raises.
py::object as_int(PyObject* object) {
    return py::reinterpret_steal<py::object>(into_python([&] { return PyNumber_Long(object); }));
}

// --- The classes of an array's parts -----------------------------------------------------------------------

/// The class of a part of an array: its memory or its stream. These classes have a table of their own: in
/// remembered_types (type_profile.hpp), types that share a slot replace each other, and looking a class up takes long.
struct Part {
    PyTypeObject* type = nullptr;
    unsigned int tag = 0;
    KnownCode code;
};

struct Parts {
    std::array<Part, 8> all;
    std::size_t next = 0;
};

#ifdef Py_GIL_DISABLED
constinit thread_local Parts parts;
#else
constinit Parts parts;
#endif

KnownCode look_up_part(PyTypeObject* type) {
    const unsigned int before = version_tag(type);
    py::object kept;
    KnownCode code = find_known_code(type, kept);
    // A tag of 0 identifies no state of the class, and the look-up has run Python code, which may have changed the class.
    if (before == 0 || version_tag(type) != before) return {};
    Part& place = parts.all[parts.next++ % parts.all.size()];
    const py::object released = py::reinterpret_steal<py::object>(std::exchange(place.code.kept, nullptr));
    place = {type, before, code};
    static_cast<void>(kept.release());  // now owned by `place`
    return code;
}

bool is_part(PyObject* object, KnownClass what) {
    PyTypeObject* const type = Py_TYPE(object);
    for (const Part& part : parts.all) {
        if (part.type == type && part.tag == version_tag(type)) return part.code.is(what);
    }
    return look_up_part(type).is(what);
}

/// The address of an array's memory; 0 if it cannot be read this way.
std::uint64_t address_of(PyObject* memory) {
    const Names& n = names();
    py::object number;
    if (is_part(memory, KnownClass::pointer)) {
        if (const py::object pointer = attribute(memory, n.device_pointer)) number = as_int(pointer.ptr());
    } else if (const py::object pointer = attribute(memory, n.device_ctypes_pointer)) {
        number = attribute(pointer.ptr(), n.value);
    }
    return number ? static_cast<std::uint64_t>(short_positive(number.ptr())) : 0;
}

/// Reads the handle of an array's stream; 0 if it has none. Returns false if it cannot be read this way.
bool read_stream(PyObject* stream, std::uint64_t& handle) {
    if (const auto number = short_integer(stream)) {
        handle = static_cast<std::uint64_t>(*number);
        return *number >= 0;
    }
    if (!is_part(stream, KnownClass::stream)) return false;
    const py::object held = attribute(stream, names().handle);
    const py::object number = held ? as_int(held.ptr()) : py::object();
    handle = number ? static_cast<std::uint64_t>(short_positive(number.ptr())) : 0;
    return handle != 0;
}

// --- Element types -----------------------------------------------------------------------------------------

/// A built-in dtype of NumPy for numbers, which never changes, and the traits that its `str` names.
struct NumberType {
    PyObject* dtype = nullptr;  // owned
    PlainTraits traits = not_plain;
};

#ifdef Py_GIL_DISABLED
constinit thread_local std::array<NumberType, 32> number_types;
#else
constinit std::array<NumberType, 32> number_types;
#endif

NumberType& place_of(PyObject* dtype) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(dtype);
    return number_types[(address >> 4 ^ address >> 9) % number_types.size()];
}

/// Returns not_plain for all other dtypes.
PlainTraits learn_traits(PyObject* dtype) {
    const py::handle given(dtype);
    if (!py::isinstance(given, py::module_::import("numpy").attr("dtype")) ||
        !py::object(given.attr("isbuiltin")).equal(py::int_(1)))
        return not_plain;
    const PlainTraits traits = detail::traits_of(py::object(given.attr("str")).ptr());
    if (traits == not_plain) return not_plain;
    NumberType& place = place_of(dtype);
    const py::object released = py::reinterpret_steal<py::object>(place.dtype);
    place = {given.inc_ref().ptr(), traits};
    return traits;
}

PlainTraits traits_of_dtype(PyObject* dtype) {
    const NumberType& known = place_of(dtype);
    return known.dtype == dtype ? known.traits : learn_traits(dtype);
}

// --- The array ---------------------------------------------------------------------------------------------

/// Returns false if the array is not plain or, with Python's error set, if an attribute raises.
bool read_attributes(PyObject* object, PlainArray& array, Dimensions* extents) {
    const Names& n = names();
    const py::object memory = attribute(object, n.gpu_data);
    if (!memory) return false;
    array.pointer = address_of(memory.ptr());
    if (array.pointer == 0) return false;

    const py::object dtype = attribute(object, n.dtype);
    if (!dtype) return false;
    array.traits = traits_of_dtype(dtype.ptr());
    if (array.traits == not_plain) return false;

    const py::object shape = attribute(object, n.shape);
    const py::object strides = shape ? attribute(object, n.strides) : py::object();
    std::int64_t bytes = plain_itemsize(array.traits);
    // The property would report these strides or None. In C order, both mean the same.
    if (!strides || !PyTuple_CheckExact(strides.ptr()) ||
        !detail::read_plain_shape(shape.ptr(), strides.ptr(), bytes, extents)) {
        return false;
    }
    array.bytes = static_cast<std::uint64_t>(bytes);

    array.version = 3;
    const py::object stream = attribute(object, n.stream);
    return stream && read_stream(stream.ptr(), array.stream.handle);
}

}  // namespace

bool read_numba_array(PyObject* object, PlainArray& array, Dimensions* shape) {
    bool is_plain = false;
    try {
        is_plain = read_attributes(object, array, shape);
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        return false;
    }
    if (!is_plain) clear_exception();
    return is_plain;
}

}  // namespace bascule::python
