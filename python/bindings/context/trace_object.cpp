// What the package makes events, ranges and records of. Python's functions are called from launches, which run without
// the GIL.

#include <memory>
#include <unistd.h>
#include <utility>

#include <pybind11/stl.h>

#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/trace/trace.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>

#include "context/call_site.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "support/unraisable.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

py::tuple to_tuple(const Dim3& size) { return py::make_tuple(size.x, size.y, size.z); }

py::dict describe_record(const TraceRecord& record) {
    py::dict found("kind"_a = to_string(record.kind), "name"_a = record.name, "thread"_a = record.thread,
                   "begin"_a = record.called.begin, "end"_a = record.called.end);
    if (!record.subject.empty()) found["signature"] = record.subject;
    if (record.config) {
        found["grid"] = to_tuple(record.config->grid);
        found["block"] = to_tuple(record.config->block);
        found["shared_bytes"] = record.config->shared_bytes;
    }
    if (record.bytes) found["bytes"] = *record.bytes;
    if (record.origin) found["origin"] = to_string(*record.origin);
    if (record.site != LaunchSite{}) found["place"] = record.site.place();
    if (record.captured) found["captured"] = true;
    if (record.stream) {
        found["device"] = record.stream->device().ordinal();
        found["stream"] = record.stream->handle();
    }
    if (record.operation != 0) {
        found["operation"] = record.operation;
        found["after"] = record.after;
        if (record.ran) found["ran"] = py::make_tuple(record.ran->begin, record.ran->end);
    }
    return found;
}

void stop_quietly() noexcept {
    try {
        const GilReleased released;
        stop_trace();
    } catch (const std::exception&) {  // what began it fails with a better reason
    }
}

py::dict end_trace() {
    const RecordedTrace trace = without_gil([] { return stop_trace(); });
    py::list records;
    py::dict devices;
    for (const TraceRecord& record : trace.records) {
        records.append(describe_record(record));
        if (record.stream) devices[py::int_(record.stream->device().ordinal())] = record.stream->device();
    }
    return py::dict("begin"_a = trace.recorded.begin, "end"_a = trace.recorded.end, "records"_a = records,
                    "devices"_a = devices, "dropped"_a = trace.dropped);
}

/// Trace.__enter__ and __exit__. No signal handler of Python's runs between these statements, so that none can leave a trace
/// that is never ended.
py::object enter_trace(const py::object& self) {
    const auto limit = self.attr("_prepare")().cast<std::size_t>();
    without_gil([&] { start_trace(limit); });
    try {
        self.attr("_begin_ranges")();
        self.attr("_state") = "recording";
    } catch (...) {
        stop_quietly();
        throw;
    }
    return self;
}

void exit_trace(const py::object& self, const py::object&, const py::object& error, const py::object&) {
    if (self.attr("_process").cast<pid_t>() != getpid()) {
        self.attr("_state") = "recorded by another process";
        return;
    }
    self.attr("_state") = "interrupted";
    self.attr("_recorded") = end_trace();
    self.attr("_state") = "recorded";
    self.attr("_finish")(error);
}

py::cpp_function method(const char* name, auto function) {
    return py::cpp_function(function, py::name(name), py::is_method(py::none()));
}

// --- Ranges of a profiler

// The functions of Python that open and close a range; never released.
py::object* push_function = nullptr;
py::object* pop_function = nullptr;

/// An error that is pending stays; one of the profiler's is printed.
template <class Call>
void for_profiler(const Call& call) noexcept {
    const GilTaken taken;
    if (!taken.held()) return;
    const py::error_scope pending;
    call_unraisable("bascule: a range for a profiler", call);
}

constexpr RangeFunctions python_ranges = {
    [](const char* name) noexcept { for_profiler([&] { (*push_function)(name); }); },
    []() noexcept { for_profiler([] { (*pop_function)(); }); },
};

void emit_python_ranges(py::object push, py::object pop) {
    push_function = new py::object(std::move(push));
    pop_function = new py::object(std::move(pop));
    emit_ranges(python_ranges);
}

// --- Launch hooks

/// A launch lets go of its hooks without the GIL.
using SharedFunction = std::shared_ptr<py::object>;

SharedFunction share(py::object function) {
    return {new py::object(std::move(function)), [](py::object* last) {
                const GilTaken taken;
                if (taken.held()) {
                    delete last;
                } else {
                    last->release();
                    delete last;
                }
            }};
}

py::tuple argument_names(const Signature& signature) {
    py::tuple names(signature.parameters.size());
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = signature.parameters[i].name;
    return names;
}

py::object describe_launch(const py::object& make_record, const LaunchInfo& launch) {
    const Signature& signature = launch.kernel.image->signature;
    return make_record(signature.kernel, to_string(signature), to_tuple(launch.config.grid),
                       to_tuple(launch.config.block), launch.config.shared_bytes,
                       StreamObject{nullptr, launch.stream, {}}, argument_names(signature),
                       launch.site.place());
}

std::function<void(const LaunchInfo&)> to_hook(const py::object& function,
                                               const SharedFunction& make_record) {
    if (function.is_none()) return {};
    return [call = share(function), make_record](const LaunchInfo& launch) {
        const GilTaken taken;
        if (!taken.held()) return;
        into_python([&] { (*call)(describe_launch(*make_record, launch)); });
    };
}

std::uint64_t add_python_hook(const py::object& before, const py::object& after, py::object make_record) {
    const SharedFunction shared = share(std::move(make_record));
    return add_launch_hook({to_hook(before, shared), to_hook(after, shared)});
}

}  // namespace

void bind_traces(py::module_& module) {
    module.attr("_enter_trace") = method("__enter__", &enter_trace);
    module.attr("_exit_trace") = method("__exit__", &exit_trace);
    module.def("_advance_trace_clock", [](std::int64_t nanoseconds) { trace_clock_advance += nanoseconds; });
    module.def("_emit_ranges", &emit_python_ranges, "push"_a, "pop"_a);
    module.def("_stop_ranges", &stop_ranges);
    module.def("_add_launch_hook", &add_python_hook, "before"_a, "after"_a, "make_record"_a);
    module.def("_remove_launch_hook", &remove_launch_hook, "number"_a, py::call_guard<GilReleased>());
}

}  // namespace bascule::python
