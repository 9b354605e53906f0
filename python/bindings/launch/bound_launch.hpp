// bascule.BoundLaunch: a kernel with its launch configuration and its arguments, checked once.
#pragma once

#include <pybind11/pybind11.h>

#include "launch/prepared_launch.hpp"

namespace bascule::python {

/// A new bascule.BoundLaunch, which keeps `launcher`, whose state it uses. Throws: whatever a launch with these arguments
/// would throw before it is issued.
pybind11::object make_bound_launch(pybind11::object launcher, LaunchState& state,
                                   const CallArguments& arguments);

}  // namespace bascule::python
