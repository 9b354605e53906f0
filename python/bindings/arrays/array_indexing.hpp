// Indexing of a DeviceArray: `x[...]` and `x[...] = value`.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_indexing(ArrayClass& type);

}  // namespace bascule::python
