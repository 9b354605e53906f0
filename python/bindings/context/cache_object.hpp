// What bascule.cache and bascule._remembered need of the cache; its warnings become Python's.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_cache(pybind11::module_& module);

}  // namespace bascule::python
