// bascule.DeviceArray: an array on the device, made here or viewed through somebody's interface.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include <bascule/interface/array_interface.hpp>
#include <bascule/runtime/memory.hpp>

#include "lent_tensor.hpp"

namespace bascule::python {

/// What bascule.DeviceArray holds. `view.stream` is the bound stream; `view.has_stream` is false only for
/// sync=False views.
struct ArrayObject {
    ArrayView view;
    Device device;
    std::shared_ptr<DeviceBuffer> buffer;  ///< null when the memory is somebody else's
    pybind11::object owner;                ///< whose memory it is, kept alive; None otherwise
    pybind11::object stream;               ///< the bound stream's object, kept alive
    LentTensor lent{};                     ///< what C code borrows of it
};

/// The ArrayObject inside an exact bascule.DeviceArray, or null. Cheap: no cast machinery.
const ArrayObject* as_array(PyObject* object) noexcept;

/// A bascule.DeviceArray of memory that `owner` owns, bound to the device's default stream.
pybind11::object make_array(const ArrayView& view, Device device, pybind11::object owner);

void bind_arrays(pybind11::module_& module);

}  // namespace bascule::python
