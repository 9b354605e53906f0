// `bascule.set_allocator`: device memory from RMM, CuPy's pool, cuda.core, or functions of the user. One function per
// kind of allocator. Sources: cuda.core's MemoryResource and Buffer, RMM's DeviceMemoryResource, CuPy's MemoryPool.
#include <mutex>
#include <optional>
#include <utility>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/memory/pool_memory.hpp>

#include "arrays/array_creation.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/producer_streams.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/owners.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

/// The call that frees an allocation, and the objects that must live until then. Any thread may destroy it.
class Allocation {
  public:
    Allocation(py::object deallocate, py::tuple arguments, py::tuple kept)
        : deallocate_(deallocate.release().ptr()),
          arguments_(arguments.release().ptr()),
          kept_(kept.release().ptr()) {}
    Allocation(Allocation&&) = delete;
    ~Allocation() {
        const GilAcquired gil;
        if (!gil.held()) return;
        const py::error_scope pending;  // this may run while an exception is being propagated
        if (deallocate_ != Py_None) {
            PyObject* result = PyObject_CallObject(deallocate_, arguments_);
            if (result == nullptr) PyErr_WriteUnraisable(deallocate_);
            Py_XDECREF(result);
        }
        Py_DECREF(deallocate_);
        Py_DECREF(arguments_);
        Py_DECREF(kept_);
    }

  private:
    PyObject* deallocate_;  // None: releasing the arguments frees it
    PyObject* arguments_;
    PyObject* kept_;
};

/// An address and the call that frees it.
struct Given {
    std::uint64_t address = 0;
    py::object deallocate;
    py::tuple arguments;
};

/// Converts integers, and objects with an integer value: ctypes pointers, cuda.bindings' CUdeviceptr.
std::uint64_t address_of(const py::object& value) {
    py::object number = value;
    if (PyIndex_Check(number.ptr()) == 0 && has_attribute(number, "value")) number = number.attr("value");
    const bool is_float = PyFloat_Check(number.ptr());
    const auto integer = py::reinterpret_steal<py::object>(is_float ? nullptr : PyNumber_Long(number.ptr()));
    if (!integer) {
        clear_exception();
        reject_field(ErrorKind::type, "allocator",
                     "the allocator returned an object of type {} where an address was expected: an integer, "
                     "a Buffer with .handle, or a MemoryPointer with .ptr.",
                     Py_TYPE(value.ptr())->tp_name);
    }
    const std::uint64_t address = to_uint64(integer).value_or(0);
    if (address == 0) {
        reject_field(
            ErrorKind::value, "allocator",
            "the allocator returned {}, which is not an address: it must be positive and below 2**64.",
            std::string(py::str(integer)));
    }
    return address;
}

/// The package of an object's class: "rmm" for rmm.pylibrmm.memory_resource.
std::string package_of(const py::object& object) {
    const std::string module = py::str(py::type::of(object).attr("__module__"));
    return module.substr(0, module.find('.'));
}

std::uint64_t handle_for_others(const py::object& stream) {
    const StreamRef ref = stream.cast<StreamObject&>().ref;
    give_out_handle(ref);
    return ref.handle();
}

/// Converts the stream to an object of the allocator's library, if the library accepts no other.
py::object stream_for(const py::object& resource, const py::object& stream) {
    const std::string package = package_of(resource);
    if (package == "rmm") return py::module_::import("rmm.pylibrmm.stream").attr("Stream")(stream);
    if (package == "cuda") {
        const auto handle = handle_for_others(stream);
        return py::module_::import("cuda.core").attr("Stream").attr("from_handle")(handle);
    }
    return stream;
}

/// Calls `allocate(bytes, stream)`, which returns an address (RMM) or a Buffer that frees itself (cuda.core).
Given from_resource(const py::object& resource, std::size_t bytes, const py::object& stream) {
    const py::object converted = stream_for(resource, stream);
    const py::object given = resource.attr("allocate")(bytes, "stream"_a = converted);
    if (has_attribute(given, "handle")) {
        return {address_of(given.attr("handle")), given.attr("close"), py::make_tuple(converted)};
    }
    const std::uint64_t address = address_of(given);
    return {address, resource.attr("deallocate"), py::make_tuple(address, bytes, converted)};
}

/// CuPy's pool allocates for CuPy's current stream, so the array's stream is made current.
Given from_pool(const py::object& pool, std::size_t bytes, const py::object& stream) {
    py::object memory;
    if (package_of(pool) == "cupy") {
        const auto handle = handle_for_others(stream);
        const py::object current = py::module_::import("cupy").attr("cuda").attr("ExternalStream")(handle);
        current.attr("__enter__")();
        try {
            memory = pool.attr("malloc")(bytes);
        } catch (...) {
            current.attr("__exit__")(py::none(), py::none(), py::none());
            throw;
        }
        current.attr("__exit__")(py::none(), py::none(), py::none());
    } else {
        memory = pool.attr("malloc")(bytes);
    }
    const std::uint64_t address = address_of(memory.attr("ptr"));
    return {address, py::none(), py::make_tuple(memory)};
}

Given from_functions(const py::object& pair, std::size_t bytes, const py::object& stream) {
    const std::uint64_t address = address_of(pair[py::int_(0)](bytes, stream));
    return {address, pair[py::int_(1)], py::make_tuple(address, bytes, stream)};
}

using MemorySource = Given (*)(const py::object&, std::size_t, const py::object&);

struct Setting {
    py::object allocator = py::none();
    MemorySource source = nullptr;
};

/// The allocator that is set. Never destroyed.
class CurrentSetting {
  public:
    Setting get() {
        const std::lock_guard lock(mutex_);
        return setting_;
    }
    /// Returns the previous setting.
    Setting replace(Setting with) {
        const std::lock_guard lock(mutex_);
        std::swap(setting_, with);
        return with;
    }

  private:
    GilMutex mutex_;
    Setting setting_;
};

/// Makes the device's context current while Python code runs.
class ContextOfPython {
  public:
    explicit ContextOfPython(Device device) {
        without_gil([&] { context_.emplace(device.context()); });
    }
    ~ContextOfPython() {
        const GilReleased released;
        context_.reset();
    }
    ContextOfPython(ContextOfPython&&) = delete;

  private:
    std::optional<ContextGuard> context_;
};

CurrentSetting& current_setting() { return never_destroyed<CurrentSetting>(); }

bool is_pair_of_functions(const py::object& object) {
    return PyTuple_Check(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2 &&
           PyCallable_Check(PyTuple_GET_ITEM(object.ptr(), 0)) != 0 &&
           PyCallable_Check(PyTuple_GET_ITEM(object.ptr(), 1)) != 0;
}

MemorySource source_of(const py::object& allocator) {
    if (is_pair_of_functions(allocator)) return &from_functions;
    if (has_attribute(allocator, "allocate")) return &from_resource;
    if (has_attribute(allocator, "malloc")) return &from_pool;
    reject_field(ErrorKind::type, "allocator",
                 "`allocator` must have allocate(nbytes, stream), as cuda.core's MemoryResource and RMM's "
                 "have, or malloc(nbytes), as CuPy's pool has, or be a pair of functions (allocate(nbytes, "
                 "stream) -> address, deallocate(address, nbytes, stream)); got an object of type {}.",
                 Py_TYPE(allocator.ptr())->tp_name);
}

py::object set_allocator(const py::object& allocator) {
    const MemorySource source = allocator.is_none() ? nullptr : source_of(allocator);
    return current_setting().replace({allocator, source}).allocator;
}

/// Allocates from the device's pool. If the program orders streams itself (`interface_sync` is off), the memory is
/// freed after pending work of all streams.
std::shared_ptr<DeviceBuffer> from_driver(std::size_t bytes, Device device, const py::object& stream) {
    const bool in_order = interface_sync();
    const StreamRef order = stream.cast<const StreamObject&>().ref;
    const GilReleased released;
    return in_order ? std::make_shared<DeviceBuffer>(bytes, order, false)
                    : std::make_shared<DeviceBuffer>(bytes, device);
}

/// The value of a bascule.MemoryPool. Its numbers are 0 for devices without pools.
struct PoolObject {
    Device device;

    /// Calls `call` without the GIL.
    template <class Call>
    auto use(const Call& call) const {
        const GilReleased released;
        const ContextGuard context(device.context());
        MemoryPool* const pool = MemoryPool::of(device);
        return pool == nullptr ? decltype(call(*pool)){} : call(*pool);
    }
    PoolUse now() const {
        return use([](const MemoryPool& pool) { return pool.use(); });
    }
};

std::uint64_t to_bytes(const py::object& number, const char* name) {
    const py::object integer = to_int(number);
    if (const auto bytes = to_uint64(integer)) return *bytes;
    reject_field(ErrorKind::value, name, "`{}` must be a number of bytes from 0 to 2**64 - 1, got {}.", name,
                 std::string(py::str(integer)));
}

void bind_memory_pool(py::module_& module) {
    py::class_<PoolObject>(
        module, "MemoryPool",
        R"(The pool that a device's new arrays take their memory from; get it with `bascule.memory_pool()`.

Arrays are allocated and freed in the order of their stream, without making it wait. What is freed stays in the pool for
the next arrays, up to `release_threshold`. Other libraries have pools of their own.)")
        .def_readonly("device", &PoolObject::device, "The device.")
        .def_property_readonly(
            "used_bytes", [](const PoolObject& self) { return self.now().used; },
            "Bytes of arrays that live, or whose stream has not reached the end of their use.")
        .def_property_readonly(
            "reserved_bytes", [](const PoolObject& self) { return self.now().reserved; },
            "Bytes of the device that the pool holds: those in use and those kept for the next arrays.")
        .def_property(
            "release_threshold", [](const PoolObject& self) { return self.now().release_threshold; },
            [](const PoolObject& self, const py::object& bytes) {
                const std::uint64_t threshold = to_bytes(bytes, "release_threshold");
                self.use([&](MemoryPool& pool) {
                    pool.set_release_threshold(threshold);
                    return 0;
                });
            },
            "How many reserved bytes are kept when the host synchronises; the driver takes back the rest "
            "that is unused. Until it is set: 64 MiB plus about twice the most that arrays have used since the device\n"
            "was last synchronised.")
        .def(
            "trim",
            [](const PoolObject& self, const py::object& keep) {
                const std::uint64_t bytes = to_bytes(keep, "keep_bytes");
                require_no_capture_of_libraries(self.device);
                without_gil([&] { trim_memory_pool(self.device, bytes); });
            },
            "keep_bytes"_a = 0,
            R"(Wait for the device, and return unused memory to the driver, for other libraries and processes.
The pool keeps `keep_bytes`.

>>> import bascule
>>> bascule.memory_pool().trim())")
        .def("__repr__", [](const PoolObject& self) {
            return fmt::format("<bascule.MemoryPool of {}>", to_string(self.device));
        });
    module.def(
        "memory_pool", [](const py::object& device) { return PoolObject{device_from(device)}; },
        "device"_a = py::none(),
        R"(The pool that new arrays of `device` (None: the current device) take their memory from. It is empty where the driver has no
pools for the device: then arrays come from `cuMemAlloc`.

>>> import bascule
>>> bascule.memory_pool().reserved_bytes >= bascule.memory_pool().used_bytes
True)");
}

}  // namespace

std::shared_ptr<DeviceBuffer> allocate_device(std::size_t bytes, Device device, const py::object& stream) {
    // Read once, because the allocator may set another one.
    const Setting used = bytes != 0 ? current_setting().get() : Setting();
    if (used.source == nullptr) return from_driver(bytes, device, stream);
    Given given = [&] {
        const ContextOfPython context(device);
        return used.source(used.allocator, bytes, stream);
    }();
    // The allocator and the stream live until the memory is freed.
    auto owner = std::make_shared<Allocation>(std::move(given.deallocate), std::move(given.arguments),
                                              py::make_tuple(used.allocator, stream));
    return std::make_shared<DeviceBuffer>(given.address, bytes, device, std::move(owner));
}

void bind_allocator(py::module_& module) {
    bind_memory_pool(module);
    module.def("set_allocator", &set_allocator, "allocator"_a,
               R"(Allocate the device memory of new arrays with `allocator`. Returns the previous allocator.

allocator : one of
    an object with `allocate(nbytes, stream)`: cuda.core's MemoryResource, RMM's DeviceMemoryResource;
    an object with `malloc(nbytes)`: `cupy.cuda.MemoryPool()`, `cupy.get_default_memory_pool()`;
    a pair of functions `(allocate, deallocate)`: `allocate(nbytes, stream)` returns an address, `deallocate(address, nbytes,
    stream)` frees it; `stream` is the bascule.Stream that the array is bound to;
    None: the device's pool, `bascule.memory_pool()`.

Memory is returned to the allocator that it came from, once no enqueued work can use it. Pinned and managed arrays always come from the
driver. An exception of the allocator propagates to the call that creates the array. The setting holds for the process; any thread may
change it.

>>> import bascule
>>> before = bascule.set_allocator(None))");
    module.def(
        "get_allocator", [] { return current_setting().get().allocator; },
        "The allocator of new arrays, or None for the device's pool.");
}

}  // namespace bascule::python
