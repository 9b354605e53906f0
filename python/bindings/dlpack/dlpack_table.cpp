// DLPack's exchange table for C code. Source: the DLPack specification 1.3, "fast exchange". The functions of the table
// throw nothing, because C code calls them.
//
// The table's contract is that its tensors may be used on `current_work_stream`, which is Bascule's current stream. If
// an array is bound to another stream, an event orders the two; the host does not wait.

#include <memory>
#include <new>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/memory/memory.hpp>

#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "dlpack/dlpack_export.hpp"
#include "dlpack/dlpack_import.hpp"
#include "exchange/dlpack_exchange.hpp"
#include "exchange/dlpack_managed.hpp"
#include "parts.hpp"
#include "support/errors.hpp"
#include "support/names.hpp"

namespace bascule::python {
namespace {

/// Calls `action`. Returns 0, or -1 with a Python error set if it throws.
template <class Action>
int status_of(Action&& action) noexcept {
    try {
        action();
        return 0;
    } catch (...) {
        set_python_error();
        return -1;
    }
}

const ArrayObject& array_of(void* object) {
    if (const ArrayObject* array = as_array(static_cast<PyObject*>(object))) return *array;
    reject(ErrorKind::type,
           "this exchange table is for bascule.DeviceArray, and was called with an object of type {}: use "
           "the table of the object's own type.",
           Py_TYPE(static_cast<PyObject*>(object))->tp_name);
}

StreamRef work_stream(Device device) { return stream_or_current(py::none(), device, "array"); }

void order_work_stream_after(const ArrayObject& array) {
    const StreamRef work = work_stream(array.device);
    if (array.view.stream && array.view.stream.handle != work.handle()) make_wait_for(array, work);
}

/// Refuses read-only arrays: a borrowed tensor has no flags, and would let others write to them.
int tensor_from_object(void* object, dlpack::Tensor* out) {
    return status_of([&] {
        const ArrayObject& array = array_of(object);
        if (!array.view.writable_by_kernels()) {
            raise_buffer_error(
                "the array is read-only, which a borrowed DLPack tensor cannot express: use a managed "
                "tensor.");
        }
        const dlpack::Tensor* lent = array.lent.get();
        if (lent == nullptr) {
            lent = &array.lent.make(tensor_without_extents(array), extents_of(array.view));
        } else {
            share_with_libraries(array);
        }
        order_work_stream_after(array);
        *out = *lent;
    });
}

int managed_from_object(void* object, dlpack::ManagedVersioned** out) {
    return status_of([&] {
        const ArrayObject& array = array_of(object);
        const dlpack::Tensor tensor = tensor_without_extents(array);
        std::vector<std::int64_t> extents = extents_of(array.view);
        order_work_stream_after(array);
        *out = make_managed<dlpack::ManagedVersioned>(
            tensor, std::move(extents), kept_object(static_cast<PyObject*>(object)),
            array.view.writable_by_kernels() ? 0 : BASCULE_DL_READ_ONLY);
    });
}

/// If this fails, the caller still owns the tensor, as callers that check the status expect.
int managed_to_object(dlpack::ManagedVersioned* tensor, void** out) {
    return status_of([&] { *out = import_managed(tensor).release().ptr(); });
}

int current_work_stream(std::int32_t type, std::int32_t id, void** out) {
    return status_of([&] {
        *out = nullptr;
        if (type == BASCULE_DL_CPU) return;
        if (!dlpack::is_cuda({type, id})) {
            reject(ErrorKind::value, "Bascule has no stream for {}: its arrays are on CUDA devices.",
                   dlpack::to_string({type, id}));
        }
        const StreamRef work = work_stream(device_with(type == BASCULE_DL_CUDA ? id : 0));
        give_out_handle(work);
        *out = work.native();
    });
}

/// Ignores data and strides of the prototype.
dlpack::ManagedVersioned* allocate(dlpack::Tensor prototype) {
    if (prototype.device.type != BASCULE_DL_CUDA) {
        reject(ErrorKind::not_supported,
               "Bascule allocates on CUDA devices, not {}: allocate with another library.",
               dlpack::to_string(prototype.device));
    }
    prototype.data = &prototype;  // any address: only the size is checked
    prototype.strides = nullptr;
    prototype.byte_offset = 0;
    const ArrayView view = dlpack::view_of(prototype);
    auto buffer =
        std::make_unique<DeviceBuffer>(view.size * view.dtype.itemsize, Device(prototype.device.id));
    dlpack::Tensor tensor = prototype;
    tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer->address()));
    buffer->share();
    const Owner owner{buffer.release(), &delete_owners<DeviceBuffer>};
    return make_managed<dlpack::ManagedVersioned>(tensor, extents_of(view), owner, 0);
}

/// Does not use Python, because it may be called without the GIL. Errors go to the caller's function.
int allocate_managed(dlpack::Tensor* prototype, dlpack::ManagedVersioned** out, void* context,
                     void (*fail)(void* context, const char* kind, const char* message)) {
    const char* kind = "RuntimeError";
    try {
        const ProgramLockReleased released;
        *out = allocate(*prototype);
        return 0;
    } catch (const ArgumentError& error) {
        fail(context, "BufferError", error.what());
    } catch (const CudaError& error) {
        if (error.code() == CUDA_ERROR_OUT_OF_MEMORY) kind = "MemoryError";
        fail(context, kind, error.what());
    } catch (const std::bad_alloc&) {
        fail(context, "MemoryError", "no host memory is left for the description of a tensor.");
    } catch (const std::exception& error) {
        fail(context, kind, error.what());
    }
    return -1;
}

const dlpack::ExchangeTable table = {
    .header = {dlpack::version, nullptr},
    .allocate = &allocate_managed,
    .managed_from_object = &managed_from_object,
    .managed_to_object = &managed_to_object,
    .tensor_from_object = &tensor_from_object,
    .current_work_stream = &current_work_stream,
};

}  // namespace

void bind_exchange_table(py::class_<ArrayObject>& type) {
    void* address = const_cast<dlpack::ExchangeTable*>(&table);  // PyCapsule_New takes a non-const pointer
    type.attr(py::handle(names().dlpack_exchange)) = owned(PyCapsule_New(address, exchange_capsule, nullptr));
}

}  // namespace bascule::python
