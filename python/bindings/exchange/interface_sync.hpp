// Whether the streams that foreign arrays name are waited for: `bascule.config.cuda_array_interface_sync`.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Thread-safe.
bool interface_sync() noexcept;

void bind_interface_sync(pybind11::module_& module);

}  // namespace bascule::python
