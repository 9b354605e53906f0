// Functions of bascule.emulated: recorded operations (on a GPU too), races and leaks.
#include <cstdint>
#include <utility>
#include <vector>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/found_errors.hpp>
#include <bascule/runtime/faults/device_reset.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/trace/driver_recorder.hpp>

#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/interruption.hpp"

namespace bascule::python {
namespace {

const Driver& driver() {
    if (Driver::existing() == nullptr) current_device();
    return Driver::get();
}

const EmulatedFunctions& functions() {
    return driver().require_emulated(
        "kernels run on a GPU, and only the emulated device records operations and finds races. Set "
        "BASCULE_DEVICE=emulated.");
}

/// Names of BASCULE_EMULATED_RECORD (1) and the following constants, in their order.
constexpr const char* kind_names[] = {"unknown", "record",        "wait",        "launch",      "copy",
                                      "fill",    "allocate",      "free",        "synchronize", "create",
                                      "destroy", "host function", "graph launch"};

const char* kind_name(std::uint32_t kind) noexcept {
    return kind_names[kind < std::size(kind_names) ? kind : 0];
}

bool runs_on_a_gpu() { return !driver().emulated(); }

void trace(bool on) {
    if (runs_on_a_gpu()) return record_operations(on);
    functions().trace(on ? 1 : 0);
}

std::vector<BasculeEmulatedOperation> traced_operations() {
    if (runs_on_a_gpu()) return recorded_operations();
    const EmulatedFunctions& emulated = functions();
    std::vector<BasculeEmulatedOperation> operations(emulated.trace_read(nullptr, 0));
    operations.resize(std::min(operations.size(), emulated.trace_read(operations.data(), operations.size())));
    return operations;
}

std::size_t trace_length() {
    if (runs_on_a_gpu()) return recorded_operations().size();
    return functions().trace_read(nullptr, 0);
}

std::uint64_t driver_calls(const std::string& function) {
    if (runs_on_a_gpu()) return recorded_calls_of(function);
    return functions().call_count(function.c_str());
}

py::list trace_stop() {
    trace(false);
    py::list list;
    for (const BasculeEmulatedOperation& operation : traced_operations()) {
        list.append(py::make_tuple(kind_name(operation.kind), operation.stream, operation.event,
                                   operation.bytes, std::string(operation.name), operation.device));
    }
    return list;
}

py::dict race_statistics() {
    BasculeEmulatedRaceStatistics found;
    functions().race_statistics(&found);
    return py::dict("nodes"_a = found.nodes, "edges"_a = found.edges, "bytes"_a = found.bytes,
                    "races"_a = found.races);
}

/// Lists memory that kernels have not freed. Empty on a GPU, or before the driver is loaded.
py::list leaks() {
    py::list list;
    const Driver* known = Driver::existing();
    if (known == nullptr || known->emulated_functions() == nullptr) return list;
    for (const EmulatedLeak& leak : known->emulated_functions()->live_allocations()) {
        list.append(py::make_tuple(leak.kernel, with_user_places(leak.place), leak.count, leak.bytes));
    }
    return list;
}

/// Whether leaks are to be reported at the end. If so, the caller reports them from now on.
bool take_over_leaks() {
    const Driver* known = Driver::existing();
    if (known == nullptr || known->emulated_functions() == nullptr) return false;
    const EmulatedFunctions& emulated = *known->emulated_functions();
    const std::uint32_t before = emulated.checks();
    emulated.set_checks(before & ~std::uint32_t{BASCULE_EMULATED_CHECK_LEAKS});
    return (before & BASCULE_EMULATED_CHECK_LEAKS) != 0;
}

/// Turns checks on, then others off; returns the previous ones.
std::uint32_t change_checks(std::uint32_t on, std::uint32_t off) {
    const std::uint32_t before = functions().checks();
    set_checks((before | on) & ~off);
    watch_arrays();
    return before;
}

/// The reports of what checks found since the last call.
std::vector<std::string> take_reports() {
    std::vector<std::string> reports;
    for (Finding& each : take_findings()) reports.push_back(std::move(each.report));
    return reports;
}

/// Prevents other threads from using NVRTC and the emulated device. A GPU needs nothing else.
void end_program(std::uint32_t milliseconds) {
    close_gate();
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return;
    end_of_program();
    driver->emulated_functions()->end(milliseconds);
}

void bind_checks(py::module_& module) {
    module.def("_find_checks", &find_checks);
    module.def("_change_checks", &change_checks);
    module.def("_driver_is_loaded", [] { return Driver::existing() != nullptr; });
    module.def("_checks_that_raise", &checks_that_raise);
    module.def("_take_reports", &take_reports);
    module.def("_raise_findings", [] { raise_findings(take_findings()); });
    module.def("_reset_devices", &reset_emulated_devices, py::call_guard<GilReleased>());
    module.def("_is_context_lost", &is_context_lost, py::call_guard<GilReleased>());
    module.def("_finish_devices", &finish_devices, py::call_guard<GilReleased>());
    module.def("_end_program", &end_program, py::call_guard<GilReleased>());
    module.def("_race_statistics", &race_statistics);
    module.def("_leaks", &leaks);
    module.def("_check_names", [] { return std::string(functions().check_names()); });
    module.def("_checks", [] { return functions().checks(); });
    module.def("_take_findings", [] { return functions().new_findings_as_json(); });
    module.def("_take_over_leaks", &take_over_leaks);
    module.def("_profile", [](bool on) { functions().profile(on ? 1 : 0); });
    module.def("_profile_so_far", [] { return functions().profile_so_far(); });
    module.def("_with_user_places", &with_user_places);
}

}  // namespace

void bind_emulated(py::module_& module) {
    bind_checks(module);
    module.def("_trace_start", [] { trace(true); });
    module.def("_trace_stop", &trace_stop);
    module.def("_trace_length", &trace_length);
    module.def("_driver_calls", &driver_calls);
}

}  // namespace bascule::python
