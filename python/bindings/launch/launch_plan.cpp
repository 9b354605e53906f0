#include "launch/launch_plan.hpp"

#include "context/current_stream.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"

namespace bascule::python {

LaunchPlan to_plan(LaunchConfig config, const pybind11::object& stream) {
    const Device device = current_device();
    return {config, {}, 0, to_stream(stream, device), stream};
}

LaunchStart start_of(const LaunchPlan& plan) {
    if (plan.stream) return {plan.stream->device(), plan.stream};
    if (anything_entered()) [[unlikely]] {
        if (const std::optional<StreamRef> entered = innermost_stream()) return {entered->device(), entered};
    }
    return {current_device(), std::nullopt};
}

std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device) {
    if (!anything_entered() || plan.stream) [[likely]]
        return std::nullopt;
    const std::optional<StreamRef> current = current_stream(device);
    if (current) require_device(*current, device, "launch");
    return current;
}

}  // namespace bascule::python
