#include "arrays/array_creation.hpp"

#include <algorithm>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "arrays/array_import.hpp"
#include "arrays/mask.hpp"
#include "context/call_site.hpp"
#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/owners.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// Names the line of Python that made an allocation, for fault reports of the emulated device.
void name_allocation(std::uint64_t address) {
    const EmulatedFunctions* emulated = Driver::get().emulated_functions();
    PyFrameObject* frame = PyEval_GetFrame();
    if (emulated == nullptr || address == 0 || frame == nullptr) return;
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const std::string file = display_name(code.attr("co_filename"));
    emulated->name_allocation(address,
                              fmt::format("made at {}:{}", file, PyFrame_GetLineNumber(frame)).c_str());
}

/// Checks the size and computes the strides.
ArrayView planned_view(const ArrayPlan& plan) {
    RawInterface raw;
    const std::string typestr = to_typestr(plan.dtype);
    raw.shape = plan.shape;
    raw.typestr = typestr;
    raw.pointer = 1;  // placeholder: the size is checked before allocating
    raw.has_strides = plan.fortran;
    std::int64_t bytes = plan.dtype.itemsize;
    for (const std::int64_t extent : plan.shape) {
        raw.strides.push_back(bytes);
        if (!__builtin_mul_overflow(bytes, extent, &bytes)) continue;
        if (std::ranges::find(plan.shape, 0) != plan.shape.end()) {
            raw.has_strides = false;  // the strides of an empty array are not used
            break;
        }
        reject_field(ErrorKind::value, "shape",
                     "an array of shape {} and dtype {} would have more than 2**63 bytes.",
                     bascule::to_string(plan.shape), bascule::to_string(plan.dtype));
    }
    ArrayView view = validate(raw);
    view.dtype = plan.dtype;  // the typestr lacks the ml_dtypes format
    view.layout = plan.layout;
    return view;
}

template <MemoryKind kind, class... Shareable>
ArrayObject new_array_of(const py::object& shape, const py::object& dtype, const std::string& order,
                         const py::object& stream, Shareable... shareable) {
    return new_array(kind, shape, dtype, order, stream, shareable...);
}

}  // namespace

ArrayObject allocate(const ArrayPlan& plan, Device device, const py::object& stream) {
    ArrayView view = planned_view(plan);
    const py::object bound = stream_to_bind(stream, device);
    const std::size_t bytes = view.size * plan.dtype.itemsize;
    auto buffer = plan.kind == MemoryKind::device && !plan.shareable
                      ? allocate_device(bytes, device, bound)
                      : without_gil([&] { return std::make_shared<DeviceBuffer>(bytes, device, plan.kind); });
    view.pointer = buffer->address();
    name_allocation(view.pointer);
    ArrayObject array{view, device, std::move(buffer), py::none(), py::none()};
    bind_stream(array, bound);
    return array;
}

ArrayObject new_array(MemoryKind kind, const py::object& shape, const py::object& dtype,
                      const std::string& order, const py::object& stream, bool shareable) {
    require_order(order, "CF");
    const py::object element = to_dtype(dtype);
    const ArrayPlan plan{.shape = to_shape(shape),
                         .dtype = dtype_of(element),
                         .layout = numpy_layout(element),
                         .fortran = order == "F",
                         .kind = kind,
                         .shareable = shareable};
    return allocate(plan, current_device(), stream);
}

ArrayObject new_array_like(const py::object& array, const py::object& stream) {
    const Device device = current_device();
    const auto like = [&](const ArrayView& view, Device where) {
        return allocate(ArrayPlan::like(view, keeps_fortran(view)), where, stream);
    };
    if (const ArrayObject* own = as_array(array.ptr())) return like(own->view, own->device);
    if (const auto other = find_cuda_array(array, false)) return like(other->view, other->device);
    return like(host_view(numpy().attr("asarray")(array)), device);
}

ArrayObject to_device(const py::object& object, Device device, const py::object& stream) {
    if (is_numpy_masked(object)) {
        ArrayObject array = to_device(object.attr("data"), device, stream);
        upload_mask(array, object);
        return array;
    }
    const ArrayObject* own = as_array(object.ptr());  // pinned or managed: its stream may still be writing
    py::object host = numpy().attr("asarray")(object);
    ArrayView view = host_view(host);
    if (!view.contiguous()) {
        if (own != nullptr && own->view.stream) {
            without_gil([&] { own->bound_stream().synchronize(); });
        }
        without_gil(
            [&] { wait_for_managed_memory(device); });  // the host copies, perhaps from managed memory
        host = numpy().attr("ascontiguousarray")(host).attr("reshape")(host.attr("shape"));
        view = host_view(host);
    }
    ArrayObject array = allocate(ArrayPlan::like(view, !view.c_contiguous), device, stream);
    const StreamRef target = array.bound_stream();
    const std::size_t bytes = view.size * view.dtype.itemsize;
    OwnerList owners;
    owners.keep(host.ptr(), bytes);  // pinned memory is read asynchronously
    ProducerPair producers;
    if (own != nullptr && own->view.stream) producers.add({producer_stream(own->bound_stream(), device)});
    without_gil([&] {
        copy_to_device(target, array.view.pointer, reinterpret_cast<const void*>(view.pointer), bytes,
                       producers.get(), owners.transfer());
        if (array.buffer == nullptr || array.buffer->order() != DeviceBuffer::no_order) return;
        using Kept = std::shared_ptr<DeviceBuffer>;
        const Owner memory{new Kept(array.buffer), &delete_owners<Kept>, bytes};
        keep_until_done(target, Owners(memory));
    });
    return array;
}

void bind_array_creation(py::module_& module) {
    module.def(
        "to_device",
        [](const py::object& array, const py::object& stream) {
            return to_device(array, current_device(), stream);
        },
        "array"_a, py::kw_only(), "stream"_a = py::none(),
        R"(Copy a host array to a new DeviceArray, in the order of `stream`.

array : numpy.ndarray or anything numpy.asarray takes; a numpy.ma array keeps its mask.
It may be changed when this returns, unless its memory is pinned: then only after `stream` has finished the copy.
stream : bound to the new array; None means the current stream, else the default stream.

Raises ArgumentError for a dtype that no device has, and CudaError when there is no memory.

>>> import numpy as np, bascule
>>> bascule.to_device(np.arange(3)).shape
(3,))");
    module.def("device_array", &new_array_of<MemoryKind::device, bool>, "shape"_a, "dtype"_a = "float64",
               py::kw_only(), "order"_a = "C", "stream"_a = py::none(), "shareable"_a = false,
               R"(Create a DeviceArray with undefined contents.

shape : int or tuple of ints.
dtype : numpy.dtype or anything that makes one; float64, as in NumPy, if it is omitted.
order : 'C' or 'F'. Raw pointers take C order only.
stream : bound to the array; None means the current stream, else the default stream.
shareable : True gives the array an allocation of its own, which other processes can open (cuIpcGetMemHandle), instead
    of memory from the pool or the allocator that is set. It takes longer, and a free may wait for the device.

>>> import bascule
>>> bascule.device_array((2, 3), "f8").nbytes
48)");
    module.def(
        "device_array_like", &new_array_like, "array"_a, py::kw_only(), "stream"_a = py::none(),
        R"(Create a DeviceArray with undefined contents and the shape, dtype and order of another array.

array : a device array, on whose device the new one is, or a host array or anything numpy.asarray takes.
stream : as for `device_array`.

>>> import numpy as np, bascule
>>> bascule.device_array_like(np.zeros((2, 3), order="F")).strides
(8, 16))");
    module.def(
        "pinned_array", &new_array_of<MemoryKind::pinned>, "shape"_a, "dtype"_a = "float64", py::kw_only(),
        "order"_a = "C", "stream"_a = py::none(),
        R"(Create an array in pinned host memory, which kernels and NumPy access in place; contents are undefined.

`numpy.asarray(x)` is a view, not a copy, and keeps the array alive. NumPy does not wait for the device: synchronise the stream that
used the array first. Copies between it and the device run while the host continues. Parameters as for `device_array`.

>>> import numpy as np, bascule
>>> x = bascule.pinned_array(3, "i4")
>>> np.asarray(x)[:] = [1, 2, 3]
>>> x.copy_to_host()
array([1, 2, 3], dtype=int32))");
    module.def(
        "managed_array", &new_array_of<MemoryKind::managed>, "shape"_a, "dtype"_a = "float64", py::kw_only(),
        "order"_a = "C", "stream"_a = py::none(),
        R"(Create an array in managed memory, which migrates to the processor that uses it; contents are undefined.

As with `pinned_array`, `numpy.asarray(x)` is a view; synchronise before the host accesses it. Where the device does not share managed
memory while kernels run (Windows, WSL, old GPUs), `asarray` waits for all kernels, and so must you before each later access: the
process crashes if the host accesses it while any kernel runs. Parameters as for `device_array`.

>>> import numpy as np, bascule
>>> x = bascule.managed_array(2, "f8")
>>> x.fill(0.5)
>>> bascule.synchronize()
>>> np.asarray(x)
array([0.5, 0.5]))");
}

}  // namespace bascule::python
