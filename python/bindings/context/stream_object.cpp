#include "context/stream_object.hpp"

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/event.hpp>

#include "context/current_stream.hpp"
#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/owners.hpp"

namespace bascule::python {
namespace {

[[noreturn]] void fail_stream(const std::string& got) {
    reject(ErrorKind::type, {.field = "stream", .got = got},
           "`stream` must be a bascule.Stream, an integer handle, or an object with __cuda_stream__, .ptr, "
           ".cuda_stream or .handle; got {}.",
           got);
}

std::uint64_t to_handle(py::handle number) {
    const py::object integer = to_int(number);
    if (const auto handle = to_uint64(integer)) return *handle;
    reject_field(ErrorKind::value, "stream", "`stream` must be a handle from 0 to 2**64 - 1, got {}.",
                 std::string(py::str(integer)));
}

/// The supported version of the stream protocol.
constexpr int stream_protocol = 0;

[[noreturn]] void fail_protocol(py::handle object, const std::string& returned) {
    reject(ErrorKind::value, {.field = "stream", .got = returned},
           "`stream` is an object of type {} whose __cuda_stream__ returns {}; Bascule supports version {} "
           "of the protocol, a tuple ({}, handle). Pass the handle as an integer.",
           Py_TYPE(object.ptr())->tp_name, returned, stream_protocol, stream_protocol);
}

/// The handle by the stream protocol: `__cuda_stream__` is a method, or an attribute as in early drafts.
std::uint64_t protocol_handle(py::handle object) {
    py::object pair = object.attr("__cuda_stream__");
    if (PyCallable_Check(pair.ptr()) != 0) pair = pair();
    const std::string returned = shortened(std::string(py::repr(pair)));
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2) fail_protocol(object, returned);
    const py::handle version = PyTuple_GET_ITEM(pair.ptr(), 0);
    const py::handle handle = PyTuple_GET_ITEM(pair.ptr(), 1);
    if (!is_integer(version) || !is_integer(handle) || !version.equal(py::int_(stream_protocol)))
        fail_protocol(object, returned);
    return to_handle(handle);
}

/// The handle that an object of another library names. ctypes pointers (Numba) are converted to their value. 0 and None
/// mean the driver's null stream, which is the legacy default stream.
std::uint64_t foreign_handle(py::handle object) {
    if (has_attribute(object, "__cuda_stream__")) return protocol_handle(object);
    for (const char* attribute : {"ptr", "cuda_stream", "handle"}) {
        if (!has_attribute(object, attribute)) continue;
        py::object handle = object.attr(attribute);
        if (!is_integer(handle) && has_attribute(handle, "value")) handle = handle.attr("value");
        if (handle.is_none()) return 0;
        if (is_integer(handle)) return to_handle(handle);
    }
    fail_stream(std::string(py::repr(object)));
}

StreamRef of_handle(std::uint64_t handle, Device device) {
    return {handle, without_gil([&] { return device_of_stream(handle, device); })};
}

StreamObject borrowed(std::uint64_t handle) {
    return {nullptr, StreamRef(handle, current_device()), py::none()};
}

float elapsed(const Event& start, const Event& end) {
    for (const Event* event : {&start, &end}) {
        if (event->timed()) continue;
        reject_field(ErrorKind::value, "end",
                     "elapsed: the {} event was created with timing=False and has no time. Create both with "
                     "bascule.event().",
                     event == &start ? "first" : "second");
    }
    if (!(start.device() == end.device())) {
        reject_field(
            ErrorKind::value, "end",
            "elapsed: the first event is on {} and the second on {}, and each device has its own clock. "
            "Record both on streams of one device.",
            to_string(start.device()), to_string(end.device()));
    }
    const auto ask = [&](const auto& question) {
        return without_gil([&] {
            const ContextGuard context(start.device().context());
            return question();
        });
    };
    try {
        return ask([&] { return Event::elapsed_ms(start.ref(), end.ref()); });
    } catch (const CudaError& error) {
        if (error.details().code_name == "CUDA_ERROR_NOT_READY") {
            reject_field(ErrorKind::value, "end",
                         "elapsed: the {} event has not happened yet. Wait for it first: end.synchronize().",
                         ask([&] { return start.ref().query(); }) ? "second" : "first");
        }
        if (error.details().code_name == "CUDA_ERROR_INVALID_HANDLE") {
            reject_field(
                ErrorKind::value, "end",
                "elapsed: one of the events was never recorded. Call event.record(stream) for both first.");
        }
        throw;
    }
}

StreamObject new_stream(int priority) {
    const Device device = current_device();
    auto owned = without_gil([&] { return std::make_shared<Stream>(device, priority); });
    hide_stream(*owned);
    const StreamRef ref = owned->ref();
    return StreamObject{std::move(owned), ref, py::none()};
}

void wait_for_event(const StreamObject& stream, const Event& event) {
    without_gil([&] { stream.ref.wait(event.ref()); });
}

StreamObject external_stream(const py::object& stream) {
    if (py::isinstance<StreamObject>(stream)) return stream.cast<StreamObject&>();
    if (stream.is_none()) fail_stream("None");
    return {nullptr, *to_stream(stream, current_device()), stream};
}

void set_default(const std::string& which) {
    if (which != "legacy" && which != "per-thread") {
        reject(ErrorKind::value, {.field = "default_stream", .got = which},
               "bascule.config.default_stream must be \"legacy\" or \"per-thread\", got \"{}\".",
               shortened(which));
    }
    set_default_stream(which == "legacy" ? DefaultStream::legacy : DefaultStream::per_thread);
}

}  // namespace

void require_no_capture_of_libraries(Device device) {
    const py::dict modules = py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict());
    if (!modules.contains("torch") && !modules.contains("cupy")) return;
    const py::object library = py::module_::import("bascule._producers").attr("capturing_library")();
    if (library.is_none()) return;
    const std::string message = fmt::format(
        "this waits for all work of device {}, and {} is capturing a graph in this thread, which "
        "such a wait would invalidate. Wait before or after the capture. The capture goes on.",
        device.ordinal(), std::string(py::str(library)));
    without_gil([&] {
        Driver::get().fail_as(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, message, "waiting for a device");
    });
}

std::string describe(StreamRef stream) {
    const std::string name = stream.handle() == 1   ? "legacy default"
                             : stream.handle() == 2 ? "per-thread default"
                                                    : fmt::format("{:#x}", stream.handle());
    return fmt::format("{} on {}", name, to_string(stream.device()));
}

std::optional<StreamRef> to_stream(py::handle object, Device device) {
    if (!object || object.is_none()) return std::nullopt;
    if (py::isinstance<StreamObject>(object)) return object.cast<StreamObject&>().ref;
    if (PyBool_Check(object.ptr())) fail_stream("a bool");
    if (!is_integer(object)) return of_handle(foreign_handle(object), device);
    const std::uint64_t handle = to_handle(object);
    return handle == 0 ? StreamRef::device_default(device) : of_handle(handle, device);
}

void require_device(StreamRef stream, Device device, const char* what) {
    if (stream.device() == device) return;
    reject(ErrorKind::value,
           {.field = "stream", .expected = to_string(device), .got = to_string(stream.device())},
           "the stream is {}, and the {} is on {}: pass a stream of that device, or use `with "
           "bascule.device({}):` where that stream is current.",
           describe(stream), what, to_string(device), device.ordinal());
}

StreamRef stream_or_current(const py::object& given, Device device, const char* what) {
    std::optional<StreamRef> stream = to_stream(given, device);
    if (!stream) stream = current_stream(device);
    if (!stream) return StreamRef::device_default(device);
    require_device(*stream, device, what);
    return *stream;
}

py::object stream_object_or_current(const py::object& given, Device device, const char* what) {
    py::object object = given;
    if (given.is_none()) {
        object = current_stream_object(device);
        if (!object) object = py::cast(StreamObject{nullptr, StreamRef::device_default(device), py::none()});
    } else if (!py::isinstance<StreamObject>(given)) {
        object = py::cast(StreamObject{nullptr, *to_stream(given, device), given});
    }
    require_device(object.cast<StreamObject&>().ref, device, what);
    return object;
}

/// Runs a host function. `data` is a tuple (function, arguments).
void call_host_function(void* data) {
    const GilAcquired gil;
    if (!gil.held()) return;
    call_unraisable("a function that a stream calls", [&] {
        const auto call = py::reinterpret_borrow<py::tuple>(static_cast<PyObject*>(data));
        const py::object function = call[0];
        function(*py::reinterpret_borrow<py::tuple>(call[1]));
    });
}

void enqueue_host_function(const StreamObject& self, const py::object& function, const py::args& arguments) {
    if (PyCallable_Check(function.ptr()) == 0) {
        reject(ErrorKind::type, "launch_host_function takes a function, and its arguments behind it; got {}.",
               safe_repr(function.ptr()));
    }
    const py::tuple call = py::make_tuple(function, arguments);
    OwnerList owners;
    owners.keep(call.ptr(), 0);
    const Owners handed = owners.transfer();
    without_gil([&] { launch_host_function(self.ref, &call_host_function, call.ptr(), handed); });
}

void bind_streams(py::module_& module) {
    // Both classes are bound before functions whose signatures name them.
    py::class_<StreamObject> stream(module, "Stream", collected<StreamObject>(),
                                    R"(A CUDA stream: work enqueued on it runs in order.

`bascule.stream()` creates a stream and owns it; `external_stream` and the default-stream functions borrow one. Any thread may use it.
`with stream:` makes it the current stream: launches, copies, fills, new arrays and events in the block use it unless they are given
another one. The current stream belongs to the thread, or to the asyncio task; blocks may be nested, and a stream may be entered again.)");
    py::class_<Event> event(
        module, "Event",
        R"(A point in the work of a stream, with a time stamp unless created with timing=False. Any thread may use it.)");

    stream
        .def(
            "__enter__",
            [](const py::object& self) {
                enter_stream(self, self.cast<const StreamObject&>().ref);
                return self;
            },
            "Make it the current stream of this thread or asyncio task; may be nested.")
        .def("__exit__", [](const py::object& self, const py::args&) { leave_current(self); })
        .def_property_readonly(
            "device", [](const StreamObject& self) { return self.ref.device(); }, "The device of the stream.")
        .def_property_readonly(
            "priority",
            [](const StreamObject& self) { return without_gil([&] { return priority_of(self.ref); }); },
            "Lower numbers are more urgent; 0 is the default.")
        .def_property_readonly(
            "handle",
            [](const StreamObject& self) {
                give_out_handle(self.ref);
                return self.ref.handle();
            },
            "The CUstream as an integer; 1 and 2 are the default streams.")
        .def(
            "synchronize", [](const StreamObject& self) { without_gil([&] { self.ref.synchronize(); }); },
            "Wait on the host until all work enqueued on this stream has finished. Raises CudaError if any "
            "of it failed.")
        .def(
            "query", [](const StreamObject& self) { return without_gil([&] { return self.ref.query(); }); },
            "True when all work enqueued on this stream has finished.")
        .def(
            "launch_host_function", &enqueue_host_function, "function"_a,
            R"(Call `function(*arguments)` when the work enqueued so far has finished; later work waits for it.

The driver calls it in a thread of its own; the emulated device may call it in the main thread, and the program then gets its
KeyboardInterrupt and SystemExit. Other exceptions go to sys.unraisablehook. It must not use the device, nor wait for it. On the stream of
a bascule.Graph it becomes part of the graph, and each launch of the graph calls it.

>>> stream.launch_host_function(print, "done"))")
        .def("wait", &wait_for_event, "event"_a,
             "Make later work on this stream wait for `event`; the host does not wait.")
        .def("wait_event", &wait_for_event, "event"_a, "The same as `wait`, by CuPy's and PyTorch's name.")
        .def(
            "__cuda_stream__",
            [](const StreamObject& self) {
                give_out_handle(self.ref);
                return py::make_tuple(0, self.ref.handle());
            },
            "The CUDA stream protocol: (version, handle).")
        .def("__eq__",
             [](const StreamObject& self, const py::object& other) {
                 return py::isinstance<StreamObject>(other) && other.cast<StreamObject&>().ref == self.ref;
             })
        .def("__hash__", [](const StreamObject& self) { return py::hash(py::int_(self.ref.handle())); })
        .def("__repr__",
             [](const StreamObject& self) { return fmt::format("<bascule.Stream {}>", describe(self.ref)); });

    event
        .def(
            "record",
            [](const Event& self, const py::object& stream) {
                const StreamRef recorded = stream_or_current(stream, self.device(), "event");
                without_gil([&] { self.ref().record(recorded); });
            },
            "stream"_a = py::none(),
            "Record the work enqueued so far on `stream` (None: the current stream, else the default "
            "stream).")
        .def(
            "wait",
            [](const Event& self, const py::object& stream) {
                const std::optional<StreamRef> given = to_stream(stream, current_device());
                const StreamRef waiting =
                    given ? *given : stream_or_current(py::none(), self.device(), "event");
                without_gil([&] { waiting.wait(self.ref()); });
            },
            "stream"_a = py::none(),
            "Make later work on `stream` (None: the current stream, else the default stream) wait for this "
            "event. The stream may be on another device.")
        .def(
            "query", [](const Event& self) { return without_gil([&] { return self.ref().query(); }); },
            "True when the recorded work has finished.")
        .def(
            "synchronize", [](const Event& self) { without_gil([&] { self.ref().synchronize(); }); },
            "Wait on the host until the recorded work has finished.")
        .def("elapsed", &elapsed, "end"_a,
             "Milliseconds from this event to `end`. Both must be recorded, finished, and created with "
             "timing.")
        .def("elapsed_time", &elapsed, "end"_a, "The same as `elapsed`, by Numba's and PyTorch's name.")
        .def_property_readonly(
            "device", [](const Event& self) { return self.device(); },
            "The device that the event was created on.")
        .def("__repr__", [](const Event& self) {
            return fmt::format("<bascule.Event {:#x} on {}>", self.ref().handle(), to_string(self.device()));
        });

    module.def("stream", &new_stream, py::kw_only(), "priority"_a = 0,
               R"(Create a non-blocking stream on the current device.

priority : lower numbers are more urgent; `bascule.current_device().stream_priorities` has the range.

>>> import bascule
>>> with bascule.stream() as stream:
...     bascule.device_array(3, "f4").stream == stream
True)");
    module.def("external_stream", &external_stream, "handle"_a,
               "Borrow a stream of another library: an integer handle, or any object that names a stream. "
               "The object is kept alive; the stream lives only as long as its owner.");
    module.def(
        "current_stream",
        []() -> py::object {
            const Device device = current_device();
            const py::object entered = current_stream_object(device);
            return entered ? entered : py::object(py::none());
        },
        "The stream that `with stream:` made current in this thread or asyncio task, or None.");
    module.def(
        "default_stream", [] { return borrowed(StreamRef::device_default(current_device()).handle()); },
        "The stream of work that names no stream and is in no `with stream:`; see "
        "`bascule.config.default_stream`.");
    module.def("_set_default_stream", &set_default, "which"_a);
    module.def(
        "legacy_default_stream", [] { return borrowed(1); }, "The legacy default stream (handle 1).");
    module.def(
        "per_thread_default_stream", [] { return borrowed(2); },
        "The calling thread's default stream (handle 2).");
    module.def(
        "event",
        [](bool timing) {
            const Device device = current_device();
            return without_gil(
                [&] { return Event(device, timing ? Event::Timing::on : Event::Timing::off); });
        },
        py::kw_only(), "timing"_a = true, "Create an event on the current device.");
    module.def(
        "synchronize",
        [] {
            const Device device = current_device();
            require_no_capture_of_libraries(device);
            without_gil([&] { synchronize(device); });
        },
        "Wait on the host until the current device has finished all work. Raises CudaError if any of it "
        "failed, and during a graph capture, which this wait would invalidate: of `bascule.Graph`, of a stream of "
        "Bascule's, and of the current stream of PyTorch or CuPy. A capture that other code has begun elsewhere is "
        "not known, and the driver invalidates it.");
}

}  // namespace bascule::python
