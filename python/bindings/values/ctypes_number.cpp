#include "values/ctypes_number.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace py = pybind11;

namespace bascule::python {
namespace {

/// The letter that a type of ctypes has in `_type_`; 0 for other types.
char letter_of(PyTypeObject* type) {
    const py::handle handle(reinterpret_cast<PyObject*>(type));
    // Before the attribute is asked for: any class may compute it.
    if (type->tp_as_buffer == nullptr || type->tp_as_buffer->bf_getbuffer == nullptr) return 0;
    const py::object letter = py::getattr(handle, "_type_", py::none());
    if (!py::isinstance<py::str>(letter) || py::len(letter) != 1) return 0;
    return letter.cast<std::string>()[0];
}

/// The bytes of a number, at most 8; their count is 0 where there are others, or in another order.
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
        PyErr_Clear();
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
    Scalar scalar;
    scalar.dtype = DType{kind, static_cast<std::uint32_t>(bytes.count)};
    switch (kind) {
        case DType::Kind::boolean:
            scalar.kind = Scalar::Kind::boolean;
            scalar.boolean = bytes.as<std::uint8_t>() != 0;
            break;
        case DType::Kind::floating:
            scalar.kind = Scalar::Kind::floating;
            scalar.floating = bytes.count == 4 ? bytes.as<float>() : bytes.as<double>();
            break;
        case DType::Kind::signed_integer:
            scalar.integer = signed_value(bytes);
            break;
        default:
            scalar.unsigned_integer = bytes.as<std::uint64_t>();  // the bytes above are 0
            scalar.integer = static_cast<std::int64_t>(scalar.unsigned_integer);
            if (scalar.integer < 0) scalar.kind = Scalar::Kind::unsigned_integer;
    }
    return scalar;
}

}  // namespace

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
        if (row.letters.find(letter) != row.letters.npos) return number_of_bytes(row.kind, bytes);
    }
    return std::nullopt;
}

}  // namespace bascule::python
