// Converts Python integers to C++ integers. Small ones are read without a call.
#pragma once

#include <cstdint>
#include <optional>

#include <pybind11/pybind11.h>

namespace bascule::python {

/// The value of an exact Python int of at most two digits, which is 60 bits on usual builds. Empty for longer integers
/// and other types.
inline std::optional<std::int64_t> short_integer(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return std::nullopt;
    const auto* number = reinterpret_cast<const PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
    // lv_tag contains the number of digits above three low bits. The lowest two bits are the sign: 0 positive, 1 zero,
    // 2 negative.
    const std::uintptr_t tag = number->long_value.lv_tag;
    const digit* digits = number->long_value.ob_digit;
    const std::uintptr_t count = tag >> 3;
    const bool negative = (tag & 3) == 2;
#else
    const Py_ssize_t size = Py_SIZE(number);
    const digit* digits = number->ob_digit;
    const bool negative = size < 0;
    const auto count = static_cast<std::uintptr_t>(negative ? -size : size);
#endif
    if (count > 2) return std::nullopt;
    std::int64_t value = count > 0 ? digits[0] : 0;
    if (count > 1) value |= static_cast<std::int64_t>(digits[1]) << PyLong_SHIFT;
    return negative ? -value : value;
}

/// The same for positive integers; 0 for everything else.
[[gnu::always_inline]] inline std::int64_t short_positive(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return 0;
    const auto* number = reinterpret_cast<const PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
    const std::uintptr_t count = number->long_value.lv_tag;  // times 8, for positive numbers
    const digit* digits = number->long_value.ob_digit;
    constexpr std::uintptr_t one = 8, two = 16;
#else
    const Py_ssize_t count = Py_SIZE(number);
    const digit* digits = number->ob_digit;
    constexpr Py_ssize_t one = 1, two = 2;
#endif
    if (count == one) return digits[0];
    return count == two ? digits[0] | static_cast<std::int64_t>(digits[1]) << PyLong_SHIFT : 0;
}

/// The value of a positive int of one digit, which is 30 bits; 0 for everything else.
[[gnu::always_inline]] inline digit one_digit(PyObject* object) noexcept {
    if (!PyLong_CheckExact(object)) return 0;
    const auto* number = reinterpret_cast<const PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
    return number->long_value.lv_tag == 8 ? number->long_value.ob_digit[0] : 0;
#else
    return Py_SIZE(number) == 1 ? number->ob_digit[0] : 0;
#endif
}

/// True for an int, and for an object with `__index__`. False for bool.
inline bool is_integer(pybind11::handle object) noexcept {
    return !PyBool_Check(object.ptr()) && PyIndex_Check(object.ptr()) != 0;
}

/// The int of an object with `__index__`. Throws: its exception.
inline pybind11::object to_int(pybind11::handle number) { return owned(PyNumber_Index(number.ptr())); }

/// The same; null if it is not an integer, for example a NumPy array of several. Throws: exceptions other than TypeError.
inline pybind11::object try_int(pybind11::handle number) {
    if (!is_integer(number)) return {};
    auto integer = pybind11::reinterpret_steal<pybind11::object>(PyNumber_Index(number.ptr()));
    if (!integer) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw pybind11::error_already_set();
        PyErr_Clear();
    }
    return integer;
}

/// True for containers of integers: a tuple, a list, a 1-d array, and other objects with a length. False for text.
inline bool is_several(pybind11::handle object) noexcept {
    PyObject* const given = object.ptr();
    if (PyTuple_Check(given) || PyList_Check(given)) return true;
    if (PySequence_Check(given) == 0 || PyUnicode_Check(given) || PyBytes_Check(given)) return false;
    if (PyObject_Length(given) >= 0) return true;
    PyErr_Clear();  // a 0-d array is a number
    return false;
}

/// The value of an int; empty if it is negative or does not fit 64 bits.
inline std::optional<std::uint64_t> to_uint64(pybind11::handle integer) noexcept {
    const unsigned long long value = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();
    return std::nullopt;
}

}  // namespace bascule::python
