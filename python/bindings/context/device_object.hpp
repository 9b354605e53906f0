// bascule.Device, and the one place where Python first meets the driver.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include <bascule/runtime/driver/device.hpp>

namespace bascule::python {

/// The device that new things are made on: the one that was entered, else that of the thread's context. At
/// the first call the driver is chosen, and an EmulatedDeviceWarning is issued when `auto` fell back. Throws:
/// LibraryError, CudaError.
Device current_device();

/// A bascule.Device, or the one of that number; None: the current one. Throws: ArgumentError.
Device device_from(const pybind11::object& device);

/// "cuda:0 'NVIDIA H200'", "emulated:0"; null mode says "emulated:0, executes nothing".
std::string to_string(Device device);

/// True when kernels run inside the launch call: then the GIL is given up for it.
bool launches_block(Device device) noexcept;

void bind_devices(pybind11::module_& module);

}  // namespace bascule::python
