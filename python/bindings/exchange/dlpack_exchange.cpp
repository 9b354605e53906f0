// Source: the DLPack specification 1.3, "fast exchange".
#include "exchange/dlpack_exchange.hpp"

#include <memory>

#include <bascule/interface/errors/rejection.hpp>

#include "context/device_object.hpp"
#include "exchange/dlpack_managed.hpp"

namespace bascule::python {
namespace {

/// Called after a function of a table has failed. Throws, unless it raised BufferError and the type has an array
/// interface, which may describe the array.
void leave_to_interface(PyObject* object, const TypeProfile& profile) {
    if (PyErr_Occurred() == nullptr) {
        reject(ErrorKind::type,
               "the exchange table of {} failed without an exception, which is a bug in the producing "
               "library.",
               Py_TYPE(object)->tp_name);
    }
    if (!profile.has_interface || PyErr_ExceptionMatches(PyExc_BufferError) == 0) {
        throw py::error_already_set();
    }
    PyErr_Clear();
}

ArrayView finish(const dlpack::Tensor& tensor, const TypeProfile& profile, Home& home) {
    ArrayView view = dlpack::view_of(tensor);
    const int told = tensor.device.type == BASCULE_DL_CUDA ? tensor.device.id : no_device_named;
    // Checks that the device exists, also for an empty array.
    if (tensor.device.type == BASCULE_DL_CUDA && told != home.device.ordinal()) device_with(told);
    find_home(view, home, told);
    view.stream.source = StreamSource::table;
    view.stream.handle = detail::work_stream_of(*profile.table, tensor.device);
    return view;
}

bool is_for_kernels(dlpack::DeviceId where) {
    if (dlpack::is_cuda(where)) return true;
    if (where.type == BASCULE_DL_CPU) return false;
    reject(ErrorKind::value,
           "the array lies in {}, which no CUDA kernel can reach: copy it to a CUDA device first.",
           dlpack::to_string(where));
}

bool read_managed(PyObject* object, const TypeProfile& profile, Home& home, OwnerList& owners,
                  ArrayView& view) {
    dlpack::ManagedVersioned* managed = nullptr;
    if (profile.table->managed_from_object(object, &managed) != 0) {
        leave_to_interface(object, profile);
        return false;
    }
    // A managed tensor may own its memory, so it is deleted on return or with the launch's owners.
    std::unique_ptr<dlpack::ManagedVersioned, void (*)(dlpack::ManagedVersioned*) noexcept> guard(
        managed, &free_managed<dlpack::ManagedVersioned>);
    const py::object holder = make_holder(managed);
    static_cast<void>(guard.release());  // the holder deletes it
    if (managed->version.major != dlpack::version.major || !is_for_kernels(managed->tensor.device)) {
        return false;
    }
    view = finish(managed->tensor, profile, home);
    view.readonly = (managed->flags & BASCULE_DL_READ_ONLY) != 0;
    owners.keep(holder.ptr(), view);
    return true;
}

}  // namespace

bool read_exchange(PyObject* object, const TypeProfile& profile, bool may_write, Home& home,
                   OwnerList& owners, ArrayView& view) {
    if (may_write && !profile.never_readonly) {
        if (profile.has_interface) return false;
        return read_managed(object, profile, home, owners, view);
    }
    if (profile.table->tensor_from_object == nullptr) {
        return read_managed(object, profile, home, owners, view);
    }
    dlpack::Tensor tensor;
    if (profile.table->tensor_from_object(object, &tensor) != 0) {
        leave_to_interface(object, profile);
        return false;
    }
    if (!is_for_kernels(tensor.device)) return false;
    view = finish(tensor, profile, home);
    owners.keep(object, view);
    return true;
}

void detail::fail_work_stream() {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    reject(ErrorKind::type,
           "the exchange table's current_work_stream failed without an exception, which is a bug in the "
           "producing library.");
}

bool order_by_table(const TypeProfile& profile, Device device, ArrayView& view) {
    if (profile.table == nullptr) return false;
    view.stream.source = StreamSource::table;
    view.stream.handle = detail::work_stream_of(*profile.table, {BASCULE_DL_CUDA, device.ordinal()});
    return true;
}

}  // namespace bascule::python
