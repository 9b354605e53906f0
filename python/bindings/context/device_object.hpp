// bascule.Device. The driver is loaded at the first use of a device.
#pragma once

#include <bascule/runtime/driver/home_device.hpp>

#include "support/gil.hpp"

namespace bascule::python {

/// The device for new objects: the entered one, else that of the thread's context. The first call loads the driver, and
/// issues an EmulatedDeviceWarning if `auto` fell back. Throws: LibraryError, CudaError.
Device current_device();

/// A bascule.Device or a device number; None: the current device. Throws: ArgumentError.
Device device_from(const py::object& device);

/// Returns "cuda:0 'NVIDIA H200'" or "emulated:0"; in null mode "emulated:0, executes nothing".
std::string to_string(Device device);

/// The device with this number, which may not have been used before. Throws: ArgumentError, CudaError.
Device device_with(int ordinal);

/// Calls resolve_at_home, unless the array is empty or its home is known. Releases the GIL only for that call.
inline void find_home(ArrayView& array, Home& home, int told = no_device_named) {
    if (array.empty() || is_known_at_home(array.pointer, home, told)) return;
    without_gil([&] { resolve_at_home(array, home, told); });
}

}  // namespace bascule::python
