// Sources: the DLPack specification for Python, and `__dlpack__` of the Python array API standard.
#include "dlpack/dlpack_export.hpp"

#include <optional>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/pointer_attributes.hpp>
#include <bascule/runtime/memory/owned_memory.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "context/stream_object.hpp"
#include "exchange/dlpack_managed.hpp"
#include "parts.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/integers.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// The kind of memory that an array is in, according to the driver.
struct MemoryPlace {
    std::int32_t type = BASCULE_DL_CUDA;
    std::uint64_t host_address = 0;  ///< 0 if the host cannot read the memory
};

MemoryPlace memory_place_of(const ArrayObject& array) {
    if (array.view.empty()) return {};
    const auto known = without_gil([&] {
        return pointer_attributes(array.view.pointer, array.device, "asking which memory an array is in");
    });
    if (!known) return {};
    if (known->kind == PointerKind::managed) return {BASCULE_DL_CUDA_MANAGED, array.view.pointer};
    if (known->kind == PointerKind::device || known->kind == PointerKind::pool) return {};
    return {BASCULE_DL_CUDA_HOST, known->host_address.value_or(0)};
}

dlpack::DeviceId device_at(const MemoryPlace& place, Device device) noexcept {
    return {place.type, place.type == BASCULE_DL_CUDA ? device.ordinal() : 0};
}

dlpack::Tensor tensor_at(const MemoryPlace& place, const ArrayObject& array) {
    const ArrayView& view = array.view;
    if (const std::string reason = dlpack::why_not_a_tensor(view); !reason.empty()) {
        raise_buffer_error(fmt::format("{} {}.", describe(view), reason));
    }
    share_with_libraries(array);
    const std::uint64_t address = place.host_address != 0 ? place.host_address : view.pointer;
    dlpack::Tensor tensor{};
    tensor.data = view.empty() ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    tensor.device = device_at(place, array.device);
    tensor.ndim = view.ndim();
    tensor.dtype = *dlpack::data_type_of(view.dtype);
    return tensor;
}

/// The reader of the tensor, and when it may read, according to `stream`.
struct Consumer {
    enum class Kind : std::uint8_t {
        unordered,  ///< -1: the caller orders the work
        stream,     ///< later work on `handle` waits for work enqueued so far
        host,       ///< the host reads at once
    };
    Kind kind = Kind::stream;
    std::uint64_t handle = 1;
};

[[noreturn]] void fail_stream(ArgumentError::Kind kind, py::handle stream, const char* why) {
    const std::string got = shortened(std::string(py::repr(stream)));
    reject(kind, {.field = "stream", .got = got}, "`stream` of __dlpack__ is {}: {}.", got, why);
}

/// Reads an integer as defined by DLPack, or an object that names a stream.
Consumer read_stream(py::handle stream, Device device) {
    if (PyBool_Check(stream.ptr())) {
        fail_stream(ErrorKind::type, stream, "pass None, -1, 1, 2 or a stream's handle");
    }
    if (PyIndex_Check(stream.ptr()) == 0) {
        return {Consumer::Kind::stream, to_stream(stream, device)->handle()};
    }
    const py::object integer = to_int(stream);
    if (integer.equal(py::int_(-1))) return {Consumer::Kind::unordered, 0};
    const std::optional<std::uint64_t> handle = to_uint64(integer);
    if (!handle) {
        fail_stream(ErrorKind::value, stream,
                    "pass None, -1 (no ordering), 1 (legacy default), 2 (per-thread default) or a stream "
                    "handle from 3 to 2**64 - 1");
    }
    if (*handle == 0) {
        fail_stream(ErrorKind::value, stream,
                    "DLPack forbids 0 on CUDA, where it could mean either default stream; pass 1 (legacy "
                    "default) or 2 (per-thread default)");
    }
    return {Consumer::Kind::stream, *handle};
}

/// A consumer of device memory that gives no stream uses the legacy default stream. Memory that the host can read may
/// be read as soon as this returns (NumPy does so), and no stream would delay that.
Consumer consumer_of(const py::object& stream, const MemoryPlace& place, Device device) {
    if (!stream.is_none()) return read_stream(stream, device);
    return {place.host_address != 0 ? Consumer::Kind::host : Consumer::Kind::stream, 1};
}

void order(const Consumer& consumer, const ArrayObject& array) {
    if (consumer.kind == Consumer::Kind::unordered) return wait_for_allocation(array);
    if (!array.view.stream) return;
    if (consumer.kind == Consumer::Kind::stream)
        return make_wait_for(array, StreamRef(consumer.handle, array.device));
    const GilReleased released;
    array.bound_stream().synchronize();
    wait_for_managed_memory(array.device);
}

// --- The other keywords

std::int64_t read_number(py::handle number, const char* option, const char* form) {
    const py::object index = try_int(number);
    const long long value = index ? PyLong_AsLongLong(index.ptr()) : -1;
    if (!index || PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        reject_field(ErrorKind::type, option, "`{}` of __dlpack__ must be {}, got {} in it.", option, form,
                     shortened(std::string(py::repr(number))));
    }
    return value;
}

std::pair<std::int64_t, std::int64_t> read_pair(const py::object& pair, const char* option,
                                                const char* form) {
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2) {
        reject_field(ErrorKind::type, option, "`{}` of __dlpack__ must be {}, got {}.", option, form,
                     shortened(std::string(py::repr(pair))));
    }
    return {read_number(PyTuple_GET_ITEM(pair.ptr(), 0), option, form),
            read_number(PyTuple_GET_ITEM(pair.ptr(), 1), option, form)};
}

bool wants_versioned(const py::object& max_version) {
    if (max_version.is_none()) return false;
    return read_pair(max_version, "max_version", "None or a pair (major, minor)").first >= 1;
}

std::optional<bool> read_copy(const py::object& copy) {
    if (copy.is_none()) return std::nullopt;
    if (PyBool_Check(copy.ptr())) return copy.ptr() == Py_True;
    reject_field(ErrorKind::type, "copy", "`copy` of __dlpack__ must be None, True or False, got {}.",
                 shortened(std::string(py::repr(copy))));
}

/// True if the consumer wants host memory. Raises: BufferError for a device that is neither the array's nor the host.
bool wants_host(const py::object& dl_device, dlpack::DeviceId here) {
    if (dl_device.is_none()) return false;
    const auto [type, id] = read_pair(dl_device, "dl_device", "None or a pair (device type, device id)");
    if (type == here.type && id == here.id) return false;
    if (type == BASCULE_DL_CPU && id == 0) return true;
    raise_buffer_error(
        fmt::format("the array is in {}, and dl_device is ({}, {}): Bascule exports to the array's own "
                    "device ({}, {}) or to host memory (1, 0). Copy it to the other device first.",
                    dlpack::to_string(here), type, id, here.type, here.id));
}

// --- Capsules

template <class Form>
py::object capsule_with(const dlpack::Tensor& tensor, const ArrayView& view, const py::object& owner,
                        std::uint64_t flags) {
    return make_capsule(make_managed<Form>(tensor, extents_of(view), kept_object(owner.ptr()), flags));
}

py::object make_tensor_capsule(const dlpack::Tensor& tensor, const ArrayView& view, const py::object& owner,
                               bool versioned, std::uint64_t flags) {
    if (versioned) return capsule_with<dlpack::ManagedVersioned>(tensor, view, owner, flags);
    return capsule_with<dlpack::Managed>(tensor, view, owner, 0);
}

py::object share(const py::object& self, const ArrayObject& array, const dlpack::Tensor& tensor,
                 bool versioned) {
    if (!array.view.writable_by_kernels() && !versioned) {
        raise_buffer_error(
            "the array is read-only, which DLPack can express from version 1.0 on: pass max_version=(1, 0) "
            "or later, or copy=True.");
    }
    return make_tensor_capsule(tensor, array.view, self, versioned,
                               array.view.writable_by_kernels() ? 0 : BASCULE_DL_READ_ONLY);
}

/// Makes a copy in host memory, complete when this returns.
py::object copy_for_host(const py::object& self, const ArrayObject& array, dlpack::Tensor tensor,
                         bool versioned) {
    const py::object host = self.attr("copy_to_host")();
    ArrayView view = array.view;
    view.strides = Dimensions();
    for (const py::handle stride : py::tuple(host.attr("strides"))) {
        view.strides.push_back(stride.cast<std::int64_t>());
    }
    tensor.device = {BASCULE_DL_CPU, 0};
    tensor.data = host_address_of(host);
    return make_tensor_capsule(tensor, view, host, versioned, BASCULE_DL_COPIED);
}

py::object copy_on_device(const py::object& self, const Consumer& consumer, bool versioned) {
    const py::object copy = self.attr("copy")();
    const ArrayObject& copied = copy.cast<const ArrayObject&>();
    const dlpack::Tensor tensor = tensor_without_extents(copied);
    order(consumer, copied);
    return make_tensor_capsule(tensor, copied.view, copy, versioned, BASCULE_DL_COPIED);
}

/// Checks everything before it waits for or copies anything.
py::object export_capsule(const py::object& self, const py::object& stream, const py::object& max_version,
                          const py::object& dl_device, const py::object& copy) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const MemoryPlace place = memory_place_of(array);
    const bool versioned = wants_versioned(max_version);
    const std::optional<bool> copies = read_copy(copy);
    Consumer consumer = consumer_of(stream, place, array.device);
    dlpack::Tensor tensor = tensor_at(place, array);
    if (wants_host(dl_device, tensor.device)) {
        if (place.host_address == 0 || copies == true) {
            if (copies != false) return copy_for_host(self, array, tensor, versioned);
            raise_buffer_error(
                fmt::format("the array is in {}, which the host cannot read without a copy: pass copy=None "
                            "or copy=True.",
                            dlpack::to_string(tensor.device)));
        }
        if (consumer.kind != Consumer::Kind::unordered) consumer.kind = Consumer::Kind::host;
        tensor.device = {BASCULE_DL_CPU, 0};
    } else if (copies == true) {
        // Memory that the host can read is copied to where the consumer reads it.
        if (consumer.kind == Consumer::Kind::host) return copy_for_host(self, array, tensor, versioned);
        return copy_on_device(self, consumer, versioned);
    }
    py::object capsule = share(self, array, tensor, versioned);
    order(consumer, array);
    return capsule;
}

}  // namespace

dlpack::DeviceId dlpack_device(const ArrayObject& array) {
    return device_at(memory_place_of(array), array.device);
}

dlpack::Tensor tensor_without_extents(const ArrayObject& array) {
    return tensor_at(memory_place_of(array), array);
}

void make_wait_for(const ArrayObject& array, StreamRef reader) {
    if (array.buffer != nullptr && array.buffer->owned() != nullptr) {
        if (auto owner = owner_of(reader)) array.buffer->owned()->share(reader, std::move(owner));
    }
    const Producer bound{{array.view.stream.handle}};
    const GilReleased released;
    const ContextGuard context(array.device.context());
    wait_for_producers(reader, ProducersToOrder(reader, {&bound, 1}).get());
}

std::vector<std::int64_t> extents_of(const ArrayView& view) {
    std::vector<std::int64_t> extents(view.shape.begin(), view.shape.end());
    extents.resize(2 * extents.size());
    dlpack::element_strides(view, std::span(extents).subspan(static_cast<std::size_t>(view.ndim())));
    return extents;
}

void bind_dlpack_export(py::class_<ArrayObject>& type) {
    type.def(
            "__dlpack__", &export_capsule, py::kw_only(), "stream"_a = py::none(),
            "max_version"_a = py::none(), "dl_device"_a = py::none(), "copy"_a = py::none(),
            R"(Export the array as a DLPack capsule, for `from_dlpack` of other libraries. The capsule keeps the array alive.

stream : the consumer's stream: None, -1, 1, 2, a stream handle, or an object that names a stream. It is made to wait for the array's
    bound stream; the host does not wait. None means the legacy default stream; for memory that the host can read (pinned, managed)
    None means the host, and the call waits. -1 means no ordering. 0 is an error.
max_version : the newest (major, minor) that the consumer supports. From (1, 0) on the capsule tells whether the array is read-only and
    whether it is a copy; without max_version a read-only array is an error.
dl_device : None or the array's own device; (1, 0) for host memory, with a copy where the host cannot read the array.
copy : True copies, in the order of the bound stream; False raises where a copy is needed; None copies only where it is needed.

Raises BufferError for arrays that DLPack cannot describe: masks, structures, times, opaque bytes, strides that are not multiples of
the item size.)")
        .def(
            "__dlpack_device__",
            [](const ArrayObject& self) {
                const dlpack::DeviceId device = dlpack_device(self);
                return py::make_tuple(device.type, device.id);
            },
            "The DLPack device type and number: 2 (CUDA) with the device's number; 3 (pinned) or 13 "
            "(managed) with 0. The emulated\ndevice is 2 (CUDA), as a GPU is.");
}

}  // namespace bascule::python
