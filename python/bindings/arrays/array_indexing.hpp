// `x[...]` and `x[...] = value` of a DeviceArray: reads what Python code wrote between the brackets.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_indexing(ArrayClass& type);

}  // namespace bascule::python
