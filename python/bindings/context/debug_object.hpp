// What Python is told of the runtime's own state: owners held, and (bascule.debug) where a fault came from.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/runtime/faults/launch_history.hpp>

#include "context/call_site.hpp"

namespace bascule::python {

/// The site of a launch whose launcher was made at `made`: that one, or while debugging the line that
/// launches.
inline LaunchSite launch_site(LaunchSite made) noexcept {
    return synchronise_launches.load(std::memory_order_relaxed) ? current_site() : made;
}

void bind_debug(pybind11::module_& module);

}  // namespace bascule::python
