// bascule.BoundLaunch: a kernel with its launch configuration and its arguments, checked once.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include "launch/prepared_launch.hpp"

namespace bascule::python {

/// A new bascule.BoundLaunch. Throws: whatever a launch with these arguments would throw before it is issued.
pybind11::object make_bound_launch(std::shared_ptr<LaunchState> state, const CallArguments& arguments);

void register_bound_launch(pybind11::module_& module);

}  // namespace bascule::python
