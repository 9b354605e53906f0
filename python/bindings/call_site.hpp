// Where in the user's Python an operation is issued: what the reports of races name.
#pragma once

namespace bascule::python {

/// From now on the emulated device asks Python's place of every operation while it looks for races. Nothing
/// on a GPU. Thread-safe; the driver has been loaded.
void tell_call_sites() noexcept;

}  // namespace bascule::python
