// The setting `bascule.config.cuda_array_interface_sync`: whether foreign arrays' streams are waited for.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Thread-safe.
bool interface_sync() noexcept;

void bind_interface_sync(pybind11::module_& module);

}  // namespace bascule::python
