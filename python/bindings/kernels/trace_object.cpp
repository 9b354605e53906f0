// For bascule.trace, profilers' ranges and launch hooks. Launches, which run without the GIL, call the Python functions
// of ranges and hooks.

#include <map>
#include <memory>
#include <sstream>
#include <unistd.h>
#include <utility>

#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/trace/trace.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>
#include <bascule/runtime/trace/trace_events.hpp>

#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/interruption.hpp"
#include "values/launch_config.hpp"

namespace bascule::python {
namespace {

void stop_quietly() noexcept {
    try {
        const GilReleased released;
        stop_trace();
    } catch (const std::exception&) {  // the error that is being handled says more
    }
}

/// The trace as JSON text. `threads` maps the system's thread ids to names.
std::string to_json(const RecordedTrace& trace, std::string name, std::string command,
                    std::map<std::uint64_t, std::string> threads) {
    const GilReleased released;
    std::ostringstream out;
    write_trace_events(out, trace, {std::move(name), std::move(command), std::move(threads)});
    return std::move(out).str();
}

/// Trace.__enter__ and __exit__. They are C++, so that no Python signal handler runs between their statements and
/// leaves a trace that is never ended.
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
    self.attr("_recorded") = without_gil([] { return stop_trace(); });
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

/// Keeps a pending Python error. Prints an error of the profiler's function.
template <class Call>
void for_profiler(const Call& call) noexcept {
    const GilAcquired gil;
    if (!gil.held()) return;
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

/// A Python function of several owners. A launch may release it without the GIL.
using SharedFunction = std::shared_ptr<py::object>;

SharedFunction share(py::object function) {
    return {new py::object(std::move(function)), [](py::object* last) {
                const GilAcquired gil;
                if (!gil.held()) last->release();
                delete last;
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
                       to_tuple(launch.config.block), launch.config.shared_bytes.value,
                       StreamObject{nullptr, launch.stream, {}}, argument_names(signature),
                       launch.site.place());
}

std::function<void(const LaunchInfo&)> to_hook(const py::object& function,
                                               const SharedFunction& make_record) {
    if (function.is_none()) return {};
    return [call = share(function), make_record](const LaunchInfo& launch) {
        const GilAcquired gil;
        if (!gil.held()) return;
        into_python([&] { (*call)(describe_launch(*make_record, launch)); });
    };
}

std::uint64_t add_python_hook(const py::object& before, const py::object& after, py::object make_record) {
    const SharedFunction shared = share(std::move(make_record));
    return add_launch_hook({to_hook(before, shared), to_hook(after, shared)});
}

}  // namespace

void bind_traces(py::module_& module) {
    py::class_<RecordedTrace>(module, "_RecordedTrace")
        .def_property_readonly("calls", [](const RecordedTrace& trace) { return trace.records.size(); })
        .def_readonly("dropped", &RecordedTrace::dropped)
        .def("to_json", &to_json, "program"_a, "command"_a, "threads"_a);
    module.attr("_enter_trace") = method("__enter__", &enter_trace);
    module.attr("_exit_trace") = method("__exit__", &exit_trace);
    module.def("_advance_trace_clock", [](std::int64_t nanoseconds) { trace_clock_advance += nanoseconds; });
    module.def("_emit_ranges", &emit_python_ranges, "push"_a, "pop"_a);
    module.def("_stop_ranges", &stop_ranges);
    module.def("_add_launch_hook", &add_python_hook, "before"_a, "after"_a, "make_record"_a);
    module.def("_remove_launch_hook", &remove_launch_hook, "number"_a, py::call_guard<GilReleased>());
}

}  // namespace bascule::python
