#include "context/device_object.hpp"

#include <cstdlib>
#include <cstring>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/driver.hpp>

#include "context/call_site.hpp"
#include "context/current_stream.hpp"
#include "parts.hpp"
#include "support/errors.hpp"
#include "support/integers.hpp"
#include "support/interruption.hpp"

namespace bascule::python {
namespace {

bool null_mode() noexcept {
    static const bool off = [] {
        const char* value = std::getenv("BASCULE_EMULATED_EXECUTE");
        return value != nullptr && std::strcmp(value, "0") == 0;
    }();
    return off;
}

/// Installs the callbacks from the emulated device into Python. Only the first call does this. The driver must be
/// loaded.
void answer_questions_once() {
    static std::atomic<bool> done{false};
    if (done.load(std::memory_order_relaxed) || done.exchange(true)) return;
    report_call_sites();
    run_signal_handlers_while_waiting();
    redirect_device_output();
}

/// Loads the driver at first use.
const Driver& loaded_driver() {
    const Driver* loaded = Driver::existing();
    return loaded != nullptr ? *loaded : without_gil([]() -> const Driver& { return Driver::get(); });
}

void warn_of_fallback(const Driver& driver) {
    static std::atomic<bool> warned{false};
    if (driver.fallback_reason().empty() || warned.load(std::memory_order_relaxed)) return;
    if (warned.exchange(true)) return;
    warn("EmulatedDeviceWarning", fmt::format("no GPU is used: {}. Kernels run on the emulated device. Set "
                                              "BASCULE_DEVICE=emulated to silence this warning, or "
                                              "BASCULE_DEVICE=cuda to make it an error.",
                                              driver.fallback_reason()));
}

void require_gpu() {
    const Device device = current_device();
    if (!device.emulated()) return;
    const std::string& reason = Driver::get().fallback_reason();
    throw LibraryError(fmt::format("a GPU is required, but kernels run on the emulated device: {}.",
                                   reason.empty() ? "BASCULE_DEVICE is 'emulated'" : reason),
                       {.library = "CUDA driver", .paths_tried = {}, .loader_message = {}});
}

py::dict driver_info() {
    const Driver& driver = loaded_driver();
    return py::dict("path"_a = driver.path(), "version"_a = driver.version(),
                    "emulated"_a = driver.emulated(), "fallback_reason"_a = driver.fallback_reason(),
                    "device_count"_a = driver.device_count(), "launches_wait"_a = launches_wait());
}

std::size_t stack_from(const py::object& bytes) {
    if (!is_integer(bytes)) {
        reject_field(ErrorKind::type, "stack_bytes", "`stack_bytes` must be a number of bytes, got {}.",
                     std::string(py::repr(bytes)));
    }
    const py::object number = to_int(bytes);
    if (const auto wanted = to_uint64(number)) return *wanted;
    reject_field(ErrorKind::value, "stack_bytes", "`stack_bytes` must be a number of bytes, got {}.",
                 std::string(py::str(number)));
}

}  // namespace

Device current_device() {
    warn_of_fallback(loaded_driver());
    if (anything_entered()) [[unlikely]] {
        if (const std::optional<Device> entered = entered_device()) return *entered;
    }
    answer_questions_once();
    return without_gil([] { return Device::current(); });
}

Device device_with(int ordinal) {
    return without_gil([&] { return Device(ordinal); });
}

std::string to_string(Device device) {
    if (!device.emulated()) return fmt::format("cuda:{} '{}'", device.ordinal(), device.name());
    return fmt::format("emulated:{}{}", device.ordinal(), null_mode() ? ", executes nothing" : "");
}

Device device_from(const py::object& device) {
    if (device.is_none()) return current_device();
    if (py::isinstance<Device>(device)) return device.cast<Device>();
    if (!is_integer(device)) {
        reject_field(ErrorKind::type, "device", "`device` must be a bascule.Device or its number, got {}.",
                     std::string(py::repr(device)));
    }
    warn_of_fallback(loaded_driver());
    const long long ordinal = PyLong_AsLongLong(py::int_(device).ptr());
    if (ordinal != static_cast<int>(ordinal) || PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        reject_field(ErrorKind::value, "device", "there is no device {}.", std::string(py::str(device)));
    }
    return device_with(static_cast<int>(ordinal));
}

void bind_devices(py::module_& module) {
    py::class_<Device>(module, "Device", R"(A CUDA device, or the emulated device.

`with device:` makes it the current device: new arrays, streams and events in the block are created on it. The current device belongs to
the thread, or to the asyncio task. The thread's current CUDA context, which other libraries use, does not change.)")
        .def(
            "__enter__",
            [](const py::object& self) {
                enter_device(self, self.cast<Device>());
                return self;
            },
            "Make it the current device of this thread or asyncio task; may be nested.")
        .def("__exit__", [](const py::object& self, const py::args&) { leave_current(self); })
        .def_property_readonly(
            "stream_priorities",
            [](Device self) {
                const PriorityRange range = without_gil([&] { return priorities_of(self); });
                return py::make_tuple(range.least_urgent, range.most_urgent);
            },
            "The least and the most urgent priority of streams, such as `(0, -5)`.")
        .def_property_readonly("ordinal", &Device::ordinal, "The device's number, from 0.")
        .def_property_readonly("name", &Device::name, "The device's name, as the driver has it.")
        .def_property_readonly("emulated", &Device::emulated,
                               "True for the emulated device, whose kernels run on the CPU.")
        .def_property_readonly(
            "arch", [](Device self) { return bascule::to_string(self.arch()); },
            "The architecture that kernels are compiled for: 'sm_90', or 'compute_80' for an emulated "
            "device of that architecture.")
        .def_property_readonly("multiprocessors", &Device::multiprocessors,
                               "Number of streaming multiprocessors (SMs).")
        .def_property_readonly(
            "compute_capability",
            [](Device self) { return py::make_tuple(self.capability().major, self.capability().minor); },
            "The compute capability as (major, minor), such as (9, 0).")
        .def_property_readonly(
            "pci_bus_id", [](Device self) { return without_gil([&] { return self.pci_bus_id(); }); },
            "The place on the PCI bus, as nvidia-smi prints it with a domain of four digits: '0000:3b:00.0'.")
        .def_property_readonly(
            "total_memory", [](Device self) { return without_gil([&] { return self.total_memory(); }); },
            "Bytes of memory that the device has.")
        .def_property_readonly(
            "free_memory", [](Device self) { return without_gil([&] { return self.free_memory(); }); },
            "Bytes of memory that no process uses. Makes a context on the device.")
        .def_property_readonly(
            "attributes",
            [](Device self) {
                py::dict all;
                for (const auto& [name, value] : without_gil([&] { return self.attributes(); }))
                    all[py::str(name)] = value;
                return all;
            },
            R"(A dict of every attribute of the driver API: `clock_rate` is the value of `CU_DEVICE_ATTRIBUTE_CLOCK_RATE`. Attributes that are
newer than the driver are not in it. Each access asks the driver for all of them; `attribute` asks for one.

>>> import bascule
>>> bascule.current_device().attributes["warp_size"]
32)")
        .def(
            "attribute",
            [](Device self, const std::string& name) {
                return without_gil([&] { return self.attribute(name); });
            },
            "name"_a,
            R"(One of `attributes`. Raises ArgumentKeyError for an unknown name, and ArgumentNotImplementedError if the driver is older than
the attribute.)")
        .def_property(
            "stack_bytes", [](Device self) { return without_gil([&] { return self.stack_bytes(); }); },
            [](Device self, const py::object& bytes) {
                const std::size_t wanted = stack_from(bytes);
                without_gil([&] { self.set_stack_bytes(wanted); });
            },
            R"(Bytes of stack that each thread of a kernel has for calls whose depth the compiler cannot know: functions that call themselves,
calls through pointers, and alloca. The driver's default is 1024.
If a kernel needs more, it faults: set this before the launch.

The device sets as much memory aside for every thread that it can run at once, at the next launch, which waits for the device.)")
        .def("__eq__",
             [](Device self, const py::object& other) {
                 return py::isinstance<Device>(other) && other.cast<Device>() == self;
             })
        .def("__hash__", &Device::ordinal)
        .def("__repr__", [](Device self) { return fmt::format("<bascule.Device {}>", to_string(self)); });
    module.def("device", &device_from, "device"_a,
               R"(The device with this number. `with bascule.device(1):` makes it the current device.

>>> import bascule
>>> with bascule.device(0) as device:
...     bascule.device_array(3, "f4").device == device
True)");
    module.def(
        "device_count", [] { return without_gil([] { return Device::count(); }); },
        "How many devices there are.");
    module.def(
        "devices",
        [] {
            return without_gil([] {
                std::vector<Device> all;
                for (int i = 0, count = Device::count(); i < count; ++i) all.emplace_back(i);
                return all;
            });
        },
        "All devices, by their numbers. Makes no context on any.");
    module.def("current_device", &current_device,
               "The device that new arrays, streams and events are created on.");
    module.def("require_gpu", &require_gpu, "Raise LibraryError unless kernels run on a GPU.");
    module.def("_driver_info", &driver_info);
}

}  // namespace bascule::python
