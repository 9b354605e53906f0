// The runtime's state for Python: owners held, and the site of a launch for bascule.debug.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/runtime/faults/launch_history.hpp>

#include "context/call_site.hpp"

namespace bascule::python {

/// The site to report for a launch: where its launcher was created, or, while launches are watched, the line that
/// launches.
inline LaunchSite launch_site(LaunchSite made) noexcept { return watches_anything() ? current_site() : made; }

}  // namespace bascule::python
