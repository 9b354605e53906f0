// The brackets of a launch, `kernel[grid, block, stream, shared_bytes]`, and what people write there by mistake.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

/// A bascule.Launcher for kernel[grid, block], kernel[grid, block, stream], kernel[grid, block, stream,
/// shared_bytes], kernel[LaunchConfig] or kernel[LaunchConfig, stream]. Throws: ArgumentError for any other key.
pybind11::object launcher_of(const Kernel& kernel, const pybind11::object& key);

}  // namespace bascule::python
