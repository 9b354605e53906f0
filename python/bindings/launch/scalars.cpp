#include "launch/scalars.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/types/dtype.hpp>

#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/names.hpp"
#include "support/without_gil.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

Scalar scalar_of(bool value) { return {.kind = Scalar::Kind::boolean, .boolean = value}; }

Scalar scalar_of(double value) { return {.kind = Scalar::Kind::floating, .floating = value}; }

Scalar scalar_of(Py_complex value) {
    return {.kind = Scalar::Kind::complex, .real = value.real, .imaginary = value.imag};
}

/// Converts an int of any size.
Scalar scalar_of_int(PyObject* integer) {
    Scalar scalar;
    int overflow = 0;
    scalar.integer = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (overflow == 0) return scalar;
    if (overflow > 0) {
        scalar.unsigned_integer = PyLong_AsUnsignedLongLong(integer);
        if (PyErr_Occurred() == nullptr) {
            scalar.kind = Scalar::Kind::unsigned_integer;
            return scalar;
        }
        PyErr_Clear();
    }
    scalar.kind = Scalar::Kind::huge_integer;
    scalar.floating = PyLong_AsDouble(integer);
    if (PyErr_Occurred() != nullptr) {  // larger than any double
        PyErr_Clear();
        scalar.floating = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
    }
    return scalar;
}

/// numpy.generic, or null if NumPy is not imported.
PyObject* numpy_generic() {
    static std::atomic<PyObject*> generic{nullptr};  // never released; every thread finds the same object
    if (PyObject* known = generic.load(std::memory_order_relaxed)) return known;
    const py::object module = entry_of(PyImport_GetModuleDict(), "numpy");
    if (!module) return nullptr;
    PyObject* found = PyObject_GetAttrString(module.ptr(), "generic");
    if (found == nullptr) {
        PyErr_Clear();
        return nullptr;
    }
    if (generic.exchange(found) != nullptr) Py_DECREF(found);  // another thread was faster
    return found;
}

Scalar scalar_of_index(PyObject* object) { return scalar_of_int(to_int(object).ptr()); }

Scalar scalar_of_real(PyObject* object) {
    return scalar_of(PyFloat_AS_DOUBLE(owned(PyNumber_Float(object)).ptr()));
}

/// Returns the scalar. Throws if converting a finite `numpy.longdouble` to double has made it infinite.
Scalar in_range(const Scalar& scalar, PyObject* object) {
    const bool infinite =
        std::isinf(scalar.floating) || std::isinf(scalar.real) || std::isinf(scalar.imaginary);
    if (infinite && numpy().attr("isfinite")(py::handle(object)).cast<bool>()) {
        const std::string got = safe_repr(object);
        reject(ErrorKind::overflow, {.got = got},
               "{} is beyond the largest double, {}: devices have no wider floating-point type.", got,
               std::numeric_limits<double>::max());
    }
    return scalar;
}

std::optional<Scalar> numpy_value(PyObject* object, const std::string& kind) {
    if (kind == "b") return scalar_of(PyObject_IsTrue(object) == 1);
    if (kind == "i" || kind == "u") return scalar_of_index(object);
    if (kind == "f") return in_range(scalar_of_real(object), object);
    if (kind == "c") return in_range(scalar_of(PyComplex_AsCComplex(object)), object);
    if (kind == "M" || kind == "m") {
        return scalar_of_index(py::object(py::handle(object).attr("view")("i8")).ptr());
    }
    return std::nullopt;
}

/// Converts an ml_dtypes scalar, which NumPy treats as bytes.
std::optional<Scalar> format_value(PyObject* object, const py::object& dtype) {
    const DType format = dtype_of(dtype);
    if (format.format == DType::Format::none) return std::nullopt;
    Scalar scalar = is_integer(format) ? scalar_of_index(object) : scalar_of_real(object);
    scalar.dtype = format;
    return scalar;
}

/// Empty for scalars that are not numbers. A long double gets no dtype, because devices have no such type.
std::optional<Scalar> numpy_scalar(PyObject* object) {
    const py::object dtype = py::handle(object).attr("dtype");
    const std::string kind = py::str(dtype.attr("kind"));
    if (kind == "V") return format_value(object, dtype);
    std::optional<Scalar> scalar = numpy_value(object, kind);
    if (scalar &&
        dtype.attr("itemsize").cast<std::size_t>() <= (scalar->kind == Scalar::Kind::complex ? 16 : 8)) {
        scalar->dtype = parse_typestr(std::string(py::str(dtype.attr("str"))));
    }
    return scalar;
}

constexpr int deepest_tuple = 16;

/// Returns the elements as a tuple; null if it is not a tuple, a list or a host array with an axis, or if it is too
/// long.
py::object elements_of(PyObject* sequence) {
    const bool is_array = has_attribute(sequence, names().array_interface) &&
                          has_attribute(sequence, "ndim") &&
                          py::handle(sequence).attr("ndim").cast<int>() > 0;
    if (!PyTuple_Check(sequence) && !PyList_CheckExact(sequence) && !is_array) return {};
    if (PyObject_Length(sequence) > static_cast<Py_ssize_t>(most_tuple_elements)) return {};
    return owned(PySequence_Tuple(sequence));
}

/// Reads the elements of one tuple and of nested ones.
struct TupleReader {
    const ElementReader& read_other;
    std::size_t room = most_tuple_elements;  ///< how many more elements are allowed
    std::string stranger{};                  ///< where reading stopped: "[1][0] is an object of type str"

    std::optional<TupleArgument> read(PyObject* sequence, int deepest) {
        const py::object elements = deepest > 0 ? elements_of(sequence) : py::object();
        if (!elements) return std::nullopt;
        TupleArgument tuple;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.ptr()); ++i) {
            PyObject* element = PyTuple_GET_ITEM(elements.ptr(), i);
            if (room-- == 0) return std::nullopt;
            if (const auto scalar = read_scalar(element)) {
                tuple.elements.emplace_back(*scalar);
            } else if (auto other = read_other(element)) {
                tuple.elements.push_back(*std::move(other));
            } else if (auto inner = read(element, deepest - 1)) {
                tuple.elements.emplace_back(*std::move(inner));
            } else {
                if (!elements_of(element)) {
                    stranger = fmt::format("[{}] is an object of type {}", i, Py_TYPE(element)->tp_name);
                } else if (!stranger.empty()) {
                    stranger = fmt::format("[{}]{}", i, stranger);
                }
                return std::nullopt;
            }
        }
        return tuple;
    }
};

// --- ctypes

/// The letter in `_type_` of a ctypes type; 0 for other types.
char letter_of(PyTypeObject* type) {
    const py::handle handle(reinterpret_cast<PyObject*>(type));
    // Check this before reading the attribute, which any class may compute.
    if (type->tp_as_buffer == nullptr || type->tp_as_buffer->bf_getbuffer == nullptr) return 0;
    const py::object letter = py::getattr(handle, "_type_", py::none());
    if (!py::isinstance<py::str>(letter) || py::len(letter) != 1) return 0;
    return letter.cast<std::string>()[0];
}

/// The bytes of a number, at most 8. `count` is 0 for larger numbers and other byte orders.
struct Bytes {
    std::array<std::byte, 8> bytes{};
    std::size_t count = 0;

    template <class T>
    T as() const noexcept {
        T value;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
};

Bytes bytes_of(PyObject* object) {
    Bytes bytes;
    Py_buffer buffer{};
    if (PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT) != 0) {
        clear_exception();
        return bytes;
    }
    const bool is_swapped = buffer.format != nullptr && buffer.format[0] == '>';
    if (!is_swapped && static_cast<std::size_t>(buffer.len) <= bytes.bytes.size()) {
        bytes.count = static_cast<std::size_t>(buffer.len);
        std::memcpy(bytes.bytes.data(), buffer.buf, bytes.count);
    }
    PyBuffer_Release(&buffer);
    return bytes;
}

std::int64_t signed_value(const Bytes& bytes) noexcept {
    const int unused = 64 - 8 * static_cast<int>(bytes.count);
    return static_cast<std::int64_t>(bytes.as<std::uint64_t>() << unused) >> unused;
}

Scalar number_of_bytes(DType::Kind kind, const Bytes& bytes) {
    if (kind == DType::Kind::boolean) return scalar_of(bytes.as<std::uint8_t>() != 0);
    if (kind == DType::Kind::floating)
        return scalar_of(bytes.count == 4 ? bytes.as<float>() : bytes.as<double>());
    if (kind == DType::Kind::signed_integer) return {.integer = signed_value(bytes)};
    const auto number = bytes.as<std::uint64_t>();  // the upper bytes are 0
    const auto integer = static_cast<std::int64_t>(number);
    return {.kind = integer < 0 ? Scalar::Kind::unsigned_integer : Scalar::Kind::integer,
            .integer = integer,
            .unsigned_integer = number};
}

}  // namespace

bool is_numpy_scalar(PyObject* object) {
    PyObject* generic = numpy_generic();
    return generic != nullptr && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(generic)) != 0;
}

/// Checks exact types first. (numpy.float64 is a float, too.)
std::optional<Scalar> read_scalar(PyObject* object) {
    if (PyFloat_CheckExact(object)) return scalar_of(PyFloat_AS_DOUBLE(object));
    if (PyLong_CheckExact(object)) return scalar_of_int(object);
    if (PyBool_Check(object)) return scalar_of(object == Py_True);
    if (is_numpy_scalar(object)) return numpy_scalar(object);
    if (PyLong_Check(object)) return scalar_of_int(object);
    if (PyFloat_Check(object)) return scalar_of(PyFloat_AS_DOUBLE(object));
    if (PyComplex_Check(object)) return scalar_of(PyComplex_AsCComplex(object));
    return std::nullopt;
}

std::optional<TupleArgument> read_tuple(PyObject* sequence, const ElementReader& read_other,
                                        std::string& unread) {
    TupleReader reader{read_other};
    auto tuple = reader.read(sequence, deepest_tuple);
    if (tuple) return tuple;
    const char* type = Py_TYPE(sequence)->tp_name;
    unread = !reader.stranger.empty()
                 ? fmt::format("a {} whose element {}", type, reader.stranger)
                 : fmt::format("a {} with more than {} values, or nested more than {} deep", type,
                               most_tuple_elements, deepest_tuple);
    return std::nullopt;
}

std::optional<ArgumentValue> read_ctypes_number(PyObject* object) {
    struct Row {
        std::string_view letters;
        DType::Kind kind;
    };
    static constexpr std::array rows = {
        Row{"?", DType::Kind::boolean}, Row{"bhilq", DType::Kind::signed_integer},
        Row{"BHILQ", DType::Kind::unsigned_integer}, Row{"fd", DType::Kind::floating}};
    const char letter = letter_of(Py_TYPE(object));
    if (letter == 0) return std::nullopt;
    const Bytes bytes = bytes_of(object);
    if (bytes.count == 0) return std::nullopt;
    if (letter == 'P') return RawPointer{bytes.as<std::uint64_t>()};
    for (const Row& row : rows) {
        if (row.letters.find(letter) == row.letters.npos) continue;
        Scalar scalar = number_of_bytes(row.kind, bytes);
        scalar.dtype = DType{row.kind, static_cast<std::uint32_t>(bytes.count)};
        return scalar;
    }
    return std::nullopt;
}

}  // namespace bascule::python
