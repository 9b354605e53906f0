// Creation of arrays (`to_device`, `device_array`, `pinned_array`, `managed_array`), and the source of their memory.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// The properties of a new array. A value type.
struct ArrayPlan {
    Dimensions shape;
    DType dtype;
    std::shared_ptr<const StructLayout> layout{};
    bool fortran = false;
    MemoryKind kind = MemoryKind::device;
    bool shareable = false;  ///< device memory with an allocation of its own, which other processes can open

    /// A plan of device memory for the same elements.
    static ArrayPlan like(const ArrayView& view, bool fortran = false) {
        return {.shape = view.shape, .dtype = view.dtype, .layout = view.layout, .fortran = fortran};
    }
};

/// Allocates device memory from the allocator that is set, else from the device's pool. Destroying the buffer returns
/// the memory to the same allocator, in the order of `stream`, a bascule.Stream that is kept until then. Throws:
/// CudaError; the allocator's exception; ArgumentError for an invalid result of the allocator.
std::shared_ptr<DeviceBuffer> allocate_device(std::size_t bytes, Device device, const py::object& stream);

/// A new array with undefined contents, bound to `stream` (None: the current stream, else the default stream). Device
/// memory comes from the allocator that is set. Throws: ArgumentError, CudaError; the allocator's exception.
ArrayObject allocate(const ArrayPlan& plan, Device device, const py::object& stream);

/// The same from arguments of users: `dtype` is anything that numpy.dtype accepts, `order` is "C" or "F". Throws: as above.
ArrayObject new_array(MemoryKind kind, const py::object& shape, const py::object& dtype,
                      const std::string& order, const py::object& stream, bool shareable = false);

/// A new array with the shape, dtype and order of any array, on that array's device, or on the current device for a
/// host array. Throws: as above.
ArrayObject new_array_like(const py::object& array, const py::object& stream);

/// Copies the host array's values to a new array. Throws: as above.
ArrayObject to_device(const py::object& host, Device device, const py::object& stream);

}  // namespace bascule::python
