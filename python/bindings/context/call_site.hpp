// Where in the user's Python an operation is issued: what reports of races and faults name.
#pragma once

#include <bascule/runtime/faults/launch_history.hpp>

namespace bascule::python {

/// The line of the user's program that runs now: "train.py:12: kernel[8, 128](x)"; none outside Python. After
/// the first time a look-up. The GIL is held.
LaunchSite current_site() noexcept;

/// From now on the emulated device asks Python's place of every operation while it looks for races. Nothing
/// on a GPU. Thread-safe; the driver has been loaded.
void tell_call_sites() noexcept;

}  // namespace bascule::python
