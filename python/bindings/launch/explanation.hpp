// `kernel[grid, block].explain(...)`: what a launch would do, without doing it.
#pragma once

#include <pybind11/pybind11.h>

#include "launch/prepared_launch.hpp"

namespace bascule::python {

/// A bascule.Explanation of the launch with these arguments: prepared as every launch is, and not enqueued. Throws:
/// what the launch would throw before its first operation.
pybind11::object explain_launch(LaunchState& state, const CallArguments& arguments);

}  // namespace bascule::python
