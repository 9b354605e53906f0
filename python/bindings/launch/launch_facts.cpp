#include "launch/launch_facts.hpp"

#include <pybind11/stl.h>

#include "context/stream_object.hpp"
#include "launch/kernel_value.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {

py::dict launch_facts(const LaunchState& state, const Kernel& kernel, const LaunchConfig* config) {
    const LaunchPlan& plan = state.plan;
    py::dict facts("kernel"_a = KernelObject{kernel}, "config"_a = py::none(),
                   "work"_a = py::tuple(py::cast(plan.work)), "shared_bytes"_a = plan.shared_bytes,
                   "stream"_a = py::none(), "peer"_a = false, "sync"_a = true, "streams"_a = py::list());
    if (config == nullptr && plan.configured && plan.work.empty()) config = &plan.config;
    if (config != nullptr) facts["config"] = *config;
    if (plan.stream) facts["stream"] = describe(*plan.stream);
    if (plan.options == nullptr) return facts;
    facts["peer"] = plan.options->peer;
    facts["sync"] = plan.options->sync;
    py::list streams;
    for (const auto& [parameter, stream] : plan.options->streams)
        streams.append(py::make_tuple(parameter, describe(stream)));
    facts["streams"] = streams;
    return facts;
}

}  // namespace bascule::python
