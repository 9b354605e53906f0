// `kernel[grid, block].explain(...)`: what a launch would do, without doing it.
#pragma once

#include <pybind11/pybind11.h>

#include "launch/call_arguments.hpp"
#include "launch/launcher.hpp"

namespace bascule::python {

/// A bascule.Explanation of the launch that `plan` and these arguments mean. Reads and checks them as the
/// launch does, and decides by the same functions; enqueues nothing. Throws: what the launch would throw
/// before its first operation.
pybind11::object explain_launch(const Kernel& kernel, const LaunchPlan& plan, const CallArguments& arguments);

}  // namespace bascule::python
