// bascule.Device. The driver is loaded at the first use of current_device.
#pragma once

#include <string>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "support/gil.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// The device that new objects are created on: the one that was entered, else that of the thread's context. The
/// first call loads the driver, and issues an EmulatedDeviceWarning when `auto` fell back. Throws:
/// LibraryError, CudaError.
Device current_device();

/// A bascule.Device, or the one of that number; None: the current one. Throws: ArgumentError.
Device device_from(const pybind11::object& device);

/// "cuda:0 'NVIDIA H200'", "emulated:0"; in null mode "emulated:0, executes nothing".
std::string to_string(Device device);

/// The device of that number, which is perhaps used for the first time. Throws: ArgumentError, CudaError.
Device device_with(int ordinal);

/// As resolve_at_home. The GIL is given back only where the driver is asked.
inline void find_home(ArrayView& array, Home& home, int told = not_told) {
    if (array.empty() || is_known_at_home(array.pointer, home, told)) return;
    without_gil([&] { resolve_at_home(array, home, told); });
}

}  // namespace bascule::python
