// Source: the DLPack specification 1.3, "fast exchange".
#include "exchange/dlpack_exchange.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

#include "exchange/dlpack_managed.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// Types whose library has no read-only arrays, by the names of the class; their subclasses too.
struct ClassName {
    std::string_view module;
    std::string_view name;
};
constexpr std::array never_readonly = {
    ClassName{"torch", "Tensor"},  // "PyTorch does not support non-writable tensors", it warns
    ClassName{"cupy", "ndarray"},  // its flags have no `writeable`
};

bool is_never_readonly(PyTypeObject* type) {
    for (const py::handle base : py::tuple(py::handle(reinterpret_cast<PyObject*>(type)).attr("__mro__"))) {
        const std::string module = py::str(py::getattr(base, "__module__", py::str()));
        const std::string name = py::str(py::getattr(base, "__qualname__", py::str()));
        for (const ClassName& known : never_readonly) {
            if (known.module == module && known.name == name) return true;
        }
    }
    return false;
}

/// The newest table of our major version in the chain; null when there is none, or when it is a table in
/// name only.
const dlpack::ExchangeTable* find_table(void* pointer) noexcept {
    static constexpr int longest_chain = 16;  // a chain that goes round ends too
    const auto* header = static_cast<const dlpack::ExchangeHeader*>(pointer);
    for (int i = 0; header != nullptr && i < longest_chain; ++i, header = header->previous) {
        if (header->version.major != dlpack::version.major) continue;
        const auto* table = reinterpret_cast<const dlpack::ExchangeTable*>(header);
        const bool usable = table->managed_from_object != nullptr && table->current_work_stream != nullptr;
        return usable ? table : nullptr;
    }
    return nullptr;
}

bool has_attribute(PyObject* object, PyObject* name, py::object& value) {
    PyObject* found = into_python([&] { return PyObject_GetAttr(object, name); });
    if (found == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
        PyErr_Clear();
        return false;
    }
    value = py::reinterpret_steal<py::object>(found);
    return true;
}

Exchange look_up(PyTypeObject* type) {
    auto* object = reinterpret_cast<PyObject*>(type);
    py::object value;
    if (!has_attribute(object, names().dlpack_exchange, value)) return {};
    if (PyCapsule_IsValid(value.ptr(), exchange_capsule) == 0) return {};
    Exchange exchange;
    exchange.table = find_table(PyCapsule_GetPointer(value.ptr(), exchange_capsule));
    if (exchange.table == nullptr) return {};
    exchange.never_readonly = is_never_readonly(type);
    exchange.has_interface = has_attribute(object, names().cuda_array_interface, value);
    return exchange;
}

/// What was found for a type in one state of it: whoever changes the type, or takes its place in memory, gets
/// another tag. Without a GIL each thread asks for itself, so that no launch takes a lock.
struct Remembered {
    PyTypeObject* type = nullptr;
    unsigned int tag = 0;
    Exchange exchange;
};

#ifdef Py_GIL_DISABLED
constinit thread_local std::array<Remembered, 256> remembered;
#else
std::array<Remembered, 256> remembered;
#endif

Remembered& place_of(PyTypeObject* type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return remembered[(address >> 4 ^ address >> 12) % remembered.size()];
}

Exchange look_up_and_remember(PyTypeObject* type) {
    const unsigned int before = version_tag(type);
    const Exchange exchange = look_up(type);
    // A tag of 0 names no state. The lookup gives the type its tag, so the second time is remembered.
    if (before != 0 && version_tag(type) == before) place_of(type) = {type, before, exchange};
    return exchange;
}

/// After a function of a table has failed. True when the array interface may know more.
bool leave_to_interface(PyObject* object, const Exchange& exchange) {
    if (PyErr_Occurred() == nullptr) {
        throw ArgumentError(
            ArgumentError::Kind::type,
            fmt::format("the exchange table of {} failed without an exception; this is for its "
                        "library to mend.",
                        Py_TYPE(object)->tp_name));
    }
    if (!exchange.has_interface || PyErr_ExceptionMatches(PyExc_BufferError) == 0) {
        throw py::error_already_set();
    }
    PyErr_Clear();
    return true;
}

/// The stream on which the table's library works on this device now.
std::uint64_t work_stream_of(const dlpack::ExchangeTable& table, dlpack::DeviceId device) {
    void* stream = nullptr;
    if (table.current_work_stream(device.type, device.id, &stream) != 0) {
        if (PyErr_Occurred() != nullptr) throw py::error_already_set();
        throw ArgumentError(
            ArgumentError::Kind::type,
            "the exchange table's current_work_stream failed without an exception; this is for "
            "the array's library to mend.");
    }
    const auto handle = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(stream));
    return handle == 0 ? 1 : handle;  // NULL is the default stream
}

void finish(const dlpack::Tensor& tensor, const Exchange& exchange, Home& home, ArrayView& view) {
    view = dlpack::view_of(tensor);
    resolve_at_home(view, home);
    view.has_stream = true;
    view.stream_source = StreamSource::table;
    view.stream = work_stream_of(*exchange.table, tensor.device);
}

bool is_for_kernels(dlpack::DeviceId where) {
    if (dlpack::is_cuda(where)) return true;
    if (where.type == BASCULE_DL_CPU) return false;
    throw ArgumentError(ArgumentError::Kind::value,
                        fmt::format("the array lies in {}, which no CUDA kernel can reach: copy it to a CUDA "
                                    "device first.",
                                    dlpack::to_string(where)));
}

bool read_managed(PyObject* object, const Exchange& exchange, Home& home, OwnerList& owners,
                  ArrayView& view) {
    dlpack::ManagedVersioned* managed = nullptr;
    if (exchange.table->managed_from_object(object, &managed) != 0) {
        leave_to_interface(object, exchange);
        return false;
    }
    // Deleted when this ends, or with the launch's owners: a managed tensor may own what it shows.
    std::unique_ptr<dlpack::ManagedVersioned, void (*)(dlpack::ManagedVersioned*) noexcept> guard(
        managed, &free_managed<dlpack::ManagedVersioned>);
    const py::object holder = make_holder(managed);
    static_cast<void>(guard.release());  // the holder deletes it
    if (managed->version.major != dlpack::version.major || !is_for_kernels(managed->tensor.device)) {
        return false;
    }
    finish(managed->tensor, exchange, home, view);
    view.readonly = (managed->flags & BASCULE_DL_READ_ONLY) != 0;
    owners.keep(holder.ptr(), view);
    return true;
}

}  // namespace

Exchange exchange_of(PyTypeObject* type) {
    const Remembered& known = place_of(type);
    if (known.type == type && known.tag == version_tag(type)) [[likely]]
        return known.exchange;
    return look_up_and_remember(type);
}

bool read_exchange(PyObject* object, const Exchange& exchange, bool may_write, Home& home, OwnerList& owners,
                   ArrayView& view) {
    if (may_write && !exchange.never_readonly) {
        if (exchange.has_interface) return false;
        return read_managed(object, exchange, home, owners, view);
    }
    if (exchange.table->tensor_from_object == nullptr) {
        return read_managed(object, exchange, home, owners, view);
    }
    dlpack::Tensor tensor;
    if (exchange.table->tensor_from_object(object, &tensor) != 0) {
        leave_to_interface(object, exchange);
        return false;
    }
    if (!is_for_kernels(tensor.device)) return false;
    finish(tensor, exchange, home, view);
    owners.keep(object, view);
    return true;
}

bool order_by_table(PyTypeObject* type, Device device, ArrayView& view) {
    const Exchange exchange = exchange_of(type);
    if (exchange.table == nullptr) return false;
    view.has_stream = true;
    view.stream = work_stream_of(*exchange.table, {BASCULE_DL_CUDA, device.ordinal()});
    return true;
}

}  // namespace bascule::python
