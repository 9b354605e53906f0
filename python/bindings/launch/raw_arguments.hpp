// `bascule.raw_pointer(address)` and `bascule.raw_bytes(buffer)`.
#pragma once

#include <cstdint>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"

namespace bascule::python {

/// A device address that is passed without checks.
struct RawPointerObject {
    std::uint64_t address = 0;
};

/// A copy of a buffer's bytes.
struct RawBytesObject {
    py::bytes bytes;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(bytes.ptr()); }
};

namespace detail {
inline PyTypeObject* raw_pointer_type = nullptr;  // set once by bind_arguments, held by the module
inline PyTypeObject* raw_bytes_type = nullptr;
}  // namespace detail

/// Null for other objects.
inline const RawPointerObject* as_raw_pointer(PyObject* object) noexcept {
    return exact_value<RawPointerObject>(object, detail::raw_pointer_type);
}
inline const RawBytesObject* as_raw_bytes(PyObject* object) noexcept {
    return exact_value<RawBytesObject>(object, detail::raw_bytes_type);
}

}  // namespace bascule::python
