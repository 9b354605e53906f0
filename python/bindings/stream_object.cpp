#include "stream_object.hpp"

#include <string>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>

#include "current_stream.hpp"
#include "device_object.hpp"
#include "gil.hpp"
#include "names.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

std::string describe(StreamRef stream) {
    if (stream.handle() == 1) return "legacy default";
    if (stream.handle() == 2) return "per-thread default";
    return fmt::format("{:#x}", stream.handle());
}

std::string repr(const StreamObject& stream) {
    return fmt::format("<bascule.Stream {} on {}>", describe(stream.ref), to_string(stream.ref.device()));
}

[[noreturn]] void fail_stream(const std::string& got) {
    throw ArgumentError(ArgumentError::Kind::type,
                        fmt::format("`stream` must be a bascule.Stream, an integer handle, or an object with "
                                    "__cuda_stream__, .ptr, .cuda_stream or .handle; got {}.",
                                    got),
                        {.field = "stream", .got = got});
}

std::uint64_t to_handle(py::handle number) {
    const py::object integer = py::reinterpret_steal<py::object>(PyNumber_Index(number.ptr()));
    if (!integer) throw py::error_already_set();
    const unsigned long long value = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw ArgumentError(ArgumentError::Kind::value,
                            fmt::format("`stream` must be a handle from 0 to 2**64 - 1, got {}.",
                                        std::string(py::str(integer))),
                            {.field = "stream"});
    }
    return value;
}

bool is_integer(py::handle object) { return !PyBool_Check(object.ptr()) && PyIndex_Check(object.ptr()) != 0; }

/// The handle that an object of another library names; ctypes pointers (Numba) by their value.
std::uint64_t foreign_handle(py::handle object) {
    if (py::hasattr(object, "__cuda_stream__")) {
        py::object protocol = object.attr("__cuda_stream__");
        if (PyCallable_Check(protocol.ptr()) != 0) protocol = protocol();
        const py::tuple pair = protocol;
        if (pair.size() != 2) fail_stream("a __cuda_stream__ that is no pair (version, handle)");
        return to_handle(pair[1]);
    }
    for (const char* attribute : {"ptr", "cuda_stream", "handle"}) {
        if (!py::hasattr(object, attribute)) continue;
        py::object handle = object.attr(attribute);
        if (!is_integer(handle) && py::hasattr(handle, "value")) handle = handle.attr("value");
        if (handle.is_none()) return 0;
        if (is_integer(handle)) return to_handle(handle);
    }
    fail_stream(std::string(py::repr(object)));
}

StreamObject borrowed(std::uint64_t handle, py::object foreign = py::none()) {
    return {nullptr, StreamRef(handle, current_device()), std::move(foreign)};
}

StreamRef given_or_default(const py::object& stream, Device device) {
    if (const std::optional<StreamRef> given = to_stream(stream, device)) return *given;
    return current_stream(device).value_or(default_stream(device));
}

}  // namespace

StreamRef default_stream(Device device) noexcept { return StreamRef::legacy_default(device); }

std::optional<StreamRef> to_stream(py::handle object, Device device) {
    if (!object || object.is_none()) return std::nullopt;
    if (py::isinstance<StreamObject>(object)) return object.cast<StreamObject&>().ref;
    if (PyBool_Check(object.ptr())) fail_stream("a bool");
    if (is_integer(object)) return StreamRef(to_handle(object), device);
    return StreamRef(foreign_handle(object), device);
}

void bind_streams(py::module_& module) {
    py::class_<StreamObject>(module, "Stream", R"(A CUDA stream: work enqueued on it runs in order.

Made by `bascule.stream()`, which owns it, or by `external_stream` and the default-stream functions, which borrow.
Any thread may use it.)")
        .def_property_readonly(
            "handle", [](const StreamObject& self) { return self.ref.handle(); },
            "The CUstream as an integer; 1 and 2 are the default streams.")
        .def(
            "synchronize",
            [](const StreamObject& self) {
                const GilReleased released;
                self.ref.synchronize();
            },
            "Wait on the host until everything enqueued here has finished. Raises CudaError if any of it "
            "failed.")
        .def(
            "query", [](const StreamObject& self) { return self.ref.query(); },
            "True when everything enqueued here has finished.")
        .def(
            "wait",
            [](const StreamObject& self, const EventObject& event) { self.ref.wait(event.event.ref()); },
            "event"_a, "Let later work here wait for `event`; the host does not wait.")
        .def(
            "__cuda_stream__", [](const StreamObject& self) { return py::make_tuple(0, self.ref.handle()); },
            "The CUDA stream protocol: (version, handle).")
        .def("__eq__",
             [](const StreamObject& self, const py::object& other) {
                 return py::isinstance<StreamObject>(other) && other.cast<StreamObject&>().ref == self.ref;
             })
        .def("__hash__", [](const StreamObject& self) { return py::hash(py::int_(self.ref.handle())); })
        .def("__repr__", &repr);

    py::class_<EventObject>(module, "Event",
                            R"(A point in a stream's work, with a time stamp unless made with timing=False.)")
        .def(
            "record",
            [](const EventObject& self, const py::object& stream) {
                self.event.ref().record(given_or_default(stream, self.event.device()));
            },
            "stream"_a = py::none(), "Mark the work enqueued on `stream` (None: the default stream) so far.")
        .def(
            "wait",
            [](const EventObject& self, const py::object& stream) {
                given_or_default(stream, self.event.device()).wait(self.event.ref());
            },
            "stream"_a = py::none(),
            "Let later work on `stream` (None: the default stream) wait for this event.")
        .def(
            "query", [](const EventObject& self) { return self.event.ref().query(); },
            "True when the work it marks has finished.")
        .def(
            "synchronize",
            [](const EventObject& self) {
                const GilReleased released;
                self.event.ref().synchronize();
            },
            "Wait on the host until the work it marks has finished.")
        .def(
            "elapsed",
            [](const EventObject& self, const EventObject& end) {
                return Event::elapsed_ms(self.event.ref(), end.event.ref());
            },
            "end"_a, "Milliseconds from this event to `end`; both must have finished.")
        .def("__repr__", [](const EventObject& self) {
            return fmt::format("<bascule.Event {:#x} on {}>", self.event.ref().handle(),
                               to_string(self.event.device()));
        });

    module.def(
        "stream",
        [](int priority) {
            auto owned = std::make_shared<Stream>(current_device(), priority);
            const StreamRef ref = owned->ref();
            return StreamObject{std::move(owned), ref, py::none()};
        },
        py::kw_only(), "priority"_a = 0,
        "A new non-blocking stream on the current device; lower priorities are more urgent.");
    module.def(
        "external_stream",
        [](const py::object& stream) {
            const StreamRef ref = given_or_default(stream, current_device());
            return StreamObject{nullptr, ref, stream};
        },
        "handle"_a,
        "A stream that another library owns: an integer handle, or any object that names one. It is kept "
        "alive "
        "only if the object is what owns it.");
    module.def(
        "default_stream", [] { return borrowed(default_stream(current_device()).handle()); },
        "The stream that work without another one goes to.");
    module.def(
        "legacy_default_stream", [] { return borrowed(1); }, "The legacy default stream (handle 1).");
    module.def(
        "per_thread_default_stream", [] { return borrowed(2); },
        "The calling thread's default stream (handle 2).");
    module.def(
        "event",
        [](bool timing) {
            return EventObject{Event(current_device(), timing ? Event::Timing::on : Event::Timing::off)};
        },
        py::kw_only(), "timing"_a = true, "A new event on the current device.");
    module.def(
        "synchronize",
        [] {
            const Device device = current_device();
            const GilReleased released;
            synchronize(device);
        },
        "Wait on the host until the current device has finished everything. Raises CudaError if any of it "
        "failed.");
}

}  // namespace bascule::python
