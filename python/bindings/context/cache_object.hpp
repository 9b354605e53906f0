// The cache for bascule.cache and bascule._remembered; its warnings become Python warnings.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_cache(pybind11::module_& module);

}  // namespace bascule::python
