// Other libraries' tensors as DeviceArrays: `from_dlpack`.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "arrays/array_object.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// A bascule.DeviceArray of the tensor, bound to the default stream of its device. Takes the tensor over when
/// it does not throw. Throws: ArgumentError for what no array of ours can be.
pybind11::object import_managed(dlpack::ManagedVersioned* managed);

/// What `__dlpack__` gives, for a launch: the memory, safe to use on the view's stream, and who keeps it.
struct ImportedTensor {
    ArrayView view;
    pybind11::object owner;
};

/// The memory that `__dlpack_device__` names; `none` without `__dlpack__`.
enum class DlpackMemory : std::uint8_t { none, host, device };

/// Asks the object for a tensor that is safe on `stream`; in host memory it is not asked. Throws:
/// ArgumentError for other memory that no kernel can reach; the producer's own exception unchanged.
DlpackMemory read_dlpack(PyObject* object, StreamRef stream, ImportedTensor& tensor);

}  // namespace bascule::python
