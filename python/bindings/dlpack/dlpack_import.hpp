// Imports other libraries' tensors as DeviceArrays: `from_dlpack`.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Makes a bascule.DeviceArray from the tensor, bound to the current stream, else to the default stream of its device.
/// Takes ownership of the tensor unless it throws. Throws: ArgumentError for a tensor that DeviceArray does not
/// support.
py::object import_managed(dlpack::ManagedVersioned* managed);

/// The result of `__dlpack__` for a launch: memory that is safe to use on the view's stream, and its owner.
struct ImportedTensor {
    ArrayView view;
    py::object owner;
};

/// The kind of memory that `__dlpack_device__` names; `none` for an object without `__dlpack__`.
enum class DlpackMemory : std::uint8_t { none, host, device };

/// Asks the object for a tensor that is safe to use on `stream`, unless it is in host memory. Throws: ArgumentError for
/// other memory that kernels cannot access; the producer's exception unchanged.
DlpackMemory read_dlpack(PyObject* object, StreamRef stream, ImportedTensor& tensor);

}  // namespace bascule::python
