// Finds the value and the holder of a pybind11 object without looking up its type.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

namespace detail {
/// Returns a pointer to the value pointer. The holder follows the value pointer in memory. Null if the
/// object was never initialised.
inline void** simple_place(PyObject* object) noexcept {
    auto* instance = reinterpret_cast<py::detail::instance*>(object);
    if (!instance->simple_layout || !instance->simple_holder_constructed) return nullptr;
    return instance->simple_value_holder;
}
}  // namespace detail

/// The value of an object of a class that pybind11 binds to T with a holder of at most two pointers; null if it has no value.
template <class T>
T* simple_value(PyObject* object) noexcept {
    void** const place = detail::simple_place(object);
    return place == nullptr ? nullptr : static_cast<T*>(place[0]);
}
template <class Holder>
Holder* simple_holder(PyObject* object) noexcept {
    void** const place = detail::simple_place(object);
    return place == nullptr ? nullptr : reinterpret_cast<Holder*>(place + 1);
}

/// The same for an object of exactly `type`, which must be bound in that way; null for other types. Called for each
/// argument of a launch.
template <class T>
[[gnu::always_inline]] inline const T* exact_value(PyObject* object, const PyTypeObject* type) noexcept {
    if (Py_TYPE(object) != type) return nullptr;
    return static_cast<const T*>(
        reinterpret_cast<const py::detail::instance*>(object)->simple_value_holder[0]);
}

}  // namespace bascule::python
