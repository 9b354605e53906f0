// Sources: the DLPack specification for Python, and `from_dlpack` of the Python array API standard.
#include "dlpack/dlpack_import.hpp"

#include <mutex>
#include <optional>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/dlpack_managed.hpp"
#include "parts.hpp"
#include "support/errors.hpp"
#include "support/names.hpp"
#include "support/stack_room.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

// --- Tensors

/// The device on which the array is used: the current one for pinned and managed memory, which all devices can use.
Device device_of(dlpack::DeviceId where) {
    return where.type == BASCULE_DL_CUDA ? device_with(where.id) : current_device();
}

[[noreturn]] void fail_unreachable(dlpack::DeviceId where) {
    const char* advice = where.type == BASCULE_DL_CPU
                             ? "Copy it to the device with bascule.to_device(numpy.from_dlpack(x))."
                             : "Only CUDA, pinned and managed memory can be used: copy it there first.";
    reject(ErrorKind::value, {.field = "device", .got = dlpack::to_string(where)}, "the tensor is in {}. {}",
           dlpack::to_string(where), advice);
}

template <class Form>
std::uint64_t flags_of(const Form& managed) noexcept {
    if constexpr (requires { managed.flags; }) return managed.flags;
    return 0;
}

/// In a tensor of another major version, only the fields before `flags` are known, such as the deleter.
template <class Form>
void check_version(const Form& managed) {
    if constexpr (requires { managed.version; }) {
        if (managed.version.major == dlpack::version.major) return;
        reject_field(
            ErrorKind::value, "version",
            "the tensor has DLPack version {}.{}, and this Bascule supports {}.x: ask its producer for "
            "an older one with max_version=({}, {}).",
            managed.version.major, managed.version.minor, dlpack::version.major, dlpack::version.major,
            dlpack::version.minor);
    }
}

/// Makes an array without a stream. Takes ownership of the tensor unless it throws.
template <class Form>
ArrayObject adopt(Form* managed) {
    check_version(*managed);
    if (!dlpack::is_cuda(managed->tensor.device)) fail_unreachable(managed->tensor.device);
    const Device device = device_of(managed->tensor.device);
    ArrayView view = dlpack::view_of(managed->tensor);
    view = without_gil([&] { return resolve(view, device); });
    view.readonly = (flags_of(*managed) & BASCULE_DL_READ_ONLY) != 0;
    return ArrayObject{std::move(view), device, nullptr, make_holder(managed), py::none()};
}

// --- Capsules

/// If several threads want a capsule's tensor, only one gets it.
template <class Form>
Form* claim(PyObject* capsule) {
    static GilMutex mutex;
    const std::lock_guard lock(mutex);
    if (PyCapsule_IsValid(capsule, CapsuleNames<Form>::fresh) == 0) return nullptr;
    auto* managed = static_cast<Form*>(PyCapsule_GetPointer(capsule, CapsuleNames<Form>::fresh));
    PyCapsule_SetName(capsule, CapsuleNames<Form>::used);
    return managed;
}

/// Takes the capsule's tensor if the capsule has that form, and renames the capsule as consumed.
template <class Form>
std::optional<ArrayObject> consume(PyObject* capsule, bool& copied) {
    Form* managed = claim<Form>(capsule);
    if (managed == nullptr) return std::nullopt;
    try {
        std::optional<ArrayObject> array = adopt(managed);
        copied = (flags_of(*managed) & BASCULE_DL_COPIED) != 0;
        return array;
    } catch (...) {  // the capsule keeps the tensor
        PyCapsule_SetName(capsule, CapsuleNames<Form>::fresh);
        throw;
    }
}

[[noreturn]] void fail_capsule(PyObject* capsule) {
    if (!PyCapsule_CheckExact(capsule)) {
        reject(ErrorKind::type,
               "__dlpack__ must return a capsule, and returned an object of type {}; this is a bug in the "
               "producing library.",
               Py_TYPE(capsule)->tp_name);
    }
    const char* name = PyCapsule_GetName(capsule);
    PyErr_Clear();
    const std::string description =
        name == nullptr ? "without a name" : fmt::format("named \"{}\"", shortened(name));
    const bool used = name != nullptr && std::string_view(name).starts_with("used_dltensor");
    reject(ErrorKind::value, {.field = "capsule", .got = description}, "the capsule is {}: {}.", description,
           used ? "an earlier from_dlpack consumed it; ask the array for another capsule"
                : "a DLPack capsule is named \"dltensor\" or \"dltensor_versioned\"");
}

ArrayObject take(PyObject* capsule, bool& copied) {
    if (auto array = consume<dlpack::ManagedVersioned>(capsule, copied)) return *std::move(array);
    if (auto array = consume<dlpack::Managed>(capsule, copied)) return *std::move(array);
    fail_capsule(capsule);
}

// --- Producers

dlpack::DeviceId ask_device(PyObject* object) {
    const py::object method = find_attribute(object, names().dlpack_device);
    if (!method) {
        reject(ErrorKind::type,
               "an object of type {} has __dlpack__ and no __dlpack_device__: DLPack requires both; this is "
               "a bug in the producing library.",
               Py_TYPE(object)->tp_name);
    }
    const py::object pair = method();
    if (PyTuple_Check(pair.ptr()) && PyTuple_GET_SIZE(pair.ptr()) == 2) {
        const long long type = PyLong_AsLongLong(PyTuple_GET_ITEM(pair.ptr(), 0));
        const long long id =
            PyErr_Occurred() == nullptr ? PyLong_AsLongLong(PyTuple_GET_ITEM(pair.ptr(), 1)) : -1;
        if (PyErr_Occurred() == nullptr)
            return {static_cast<std::int32_t>(type), static_cast<std::int32_t>(id)};
        PyErr_Clear();
    }
    reject(ErrorKind::type,
           "__dlpack_device__ must return a pair (type, number), got {}; this is a bug in the producing "
           "library.",
           shortened(std::string(py::repr(pair))));
}

/// The `stream` argument for `__dlpack__`. Producers of pinned memory, which belongs to the host, get None.
py::object stream_for(dlpack::DeviceId where, StreamRef stream) {
    if (where.type == BASCULE_DL_CUDA_HOST) return py::none();
    give_out_handle(stream);
    return py::int_(stream.handle());
}

/// Calls `__dlpack__`. Producers older than DLPack 1.0 know only `stream` and raise TypeError for other keywords.
/// `asked`: whether the producer accepted all keywords.
py::object ask_capsule(const py::object& method, const py::object& stream, const py::object& copy,
                       bool& asked) {
    py::dict keywords("stream"_a = stream,
                      "max_version"_a = py::make_tuple(dlpack::version.major, dlpack::version.minor));
    if (!copy.is_none()) keywords["copy"] = copy;
    asked = true;
    try {
        return method(**keywords);
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) throw;
    }
    asked = false;
    return method("stream"_a = stream);
}

void check_device(const py::object& wanted, Device device) {
    if (wanted.is_none()) return;
    const Device asked = device_from(wanted);
    if (asked == device) return;
    raise_buffer_error(fmt::format("the tensor is on {}, and `device` is {}: copy it there first.",
                                   to_string(device), to_string(asked)));
}

py::object from_capsule(const py::object& capsule, const py::object& device, const py::object& stream,
                        bool& copied) {
    ArrayObject array = take(capsule.ptr(), copied);
    check_device(device, array.device);
    bind_stream(array, stream_object_or_current(stream, array.device, "tensor"));
    return py::cast(std::move(array));
}

py::object from_producer(const py::object& object, const py::object& device, const py::object& copy,
                         const py::object& stream, bool& copied) {
    const py::object method = find_attribute(object.ptr(), names().dlpack);
    if (!method || PyType_Check(object.ptr())) {
        reject(ErrorKind::type,
               "from_dlpack takes an array with __dlpack__ or a DLPack capsule, got {} of type {}.",
               shortened(std::string(py::repr(object))), Py_TYPE(object.ptr())->tp_name);
    }
    const dlpack::DeviceId where = ask_device(object.ptr());
    if (!dlpack::is_cuda(where)) fail_unreachable(where);
    const Device there = device_of(where);
    check_device(device, there);
    const py::object bound = stream_object_or_current(stream, there, "tensor");
    const StreamRef ref = bound.cast<StreamObject&>().ref;
    bool asked = false;
    // A producer might copy pinned memory to host memory that kernels cannot read, so that copy is made here.
    const bool copies_here = where.type == BASCULE_DL_CUDA_HOST && copy.ptr() == Py_True;
    const py::object requested = copies_here ? py::none() : copy;
    const py::object capsule = ask_capsule(method, stream_for(where, ref), requested, asked);
    ArrayObject array = take(capsule.ptr(), copied);
    copied = copied || (asked && !requested.is_none());  // the producer did what `copy` asks
    bind_stream(array, bound);
    require_device(ref, array.device, "tensor");
    return py::cast(std::move(array));
}

py::object from_dlpack(const py::object& object, const py::object& device, const py::object& copy,
                       const py::object& stream) {
    if (!copy.is_none() && !PyBool_Check(copy.ptr())) {
        reject_field(ErrorKind::type, "copy", "`copy` must be None, True or False, got {}.",
                     shortened(std::string(py::repr(copy))));
    }
    bool copied = false;
    const py::object array = PyCapsule_CheckExact(object.ptr())
                                 ? from_capsule(object, device, stream, copied)
                                 : from_producer(object, device, copy, stream, copied);
    return copy.ptr() == Py_True && !copied ? py::object(array.attr("copy")()) : array;
}

}  // namespace

py::object import_managed(dlpack::ManagedVersioned* managed) {
    ArrayObject array = adopt(managed);
    const py::object holder = array.owner;
    try {
        bind_stream(array, stream_object_or_current(py::none(), array.device, "tensor"));
        return py::cast(std::move(array));
    } catch (...) {
        PyCapsule_SetDestructor(holder.ptr(), nullptr);  // the caller keeps the tensor
        throw;
    }
}

DlpackMemory read_dlpack(PyObject* object, StreamRef stream, ImportedTensor& tensor) {
    if (PyType_Check(object)) return DlpackMemory::none;
    require_stack(&tensor);
    const py::object method = find_attribute(object, names().dlpack);
    if (!method) return DlpackMemory::none;
    const dlpack::DeviceId where = ask_device(object);
    if (where.type == BASCULE_DL_CPU) return DlpackMemory::host;
    if (!dlpack::is_cuda(where)) fail_unreachable(where);
    bool asked = false;
    bool copied = false;
    const py::object capsule = ask_capsule(method, stream_for(where, stream), py::none(), asked);
    ArrayObject array = take(capsule.ptr(), copied);
    tensor.view = array.view;
    tensor.owner = std::move(array.owner);
    return DlpackMemory::device;
}

void bind_dlpack_import(py::module_& module) {
    module.def(
        "from_dlpack", &from_dlpack, "object"_a, py::kw_only(), "device"_a = py::none(),
        "copy"_a = py::none(), "stream"_a = py::none(),
        R"(View another library's array that has `__dlpack__`, or a DLPack capsule, as a DeviceArray, without a copy.

The producer makes `stream` wait for its pending work, and the array is bound to `stream`. DLPack orders only this way: later work of the
producer on its array does not wait for work here; `as_cuda_array` orders both ways. A capsule has no stream: its work was ordered when it
was created. The array keeps the tensor alive.

device : None, or the bascule.Device (or its number) that the array must be on.
copy : True makes a copy; False raises where the producer can only give a copy; None copies only where the producer must.
stream : bound to the array; None means the current stream, else the default stream.

Raises ArgumentError for host memory and for objects that are not arrays; the producer's own exceptions propagate unchanged.)");
}

}  // namespace bascule::python
