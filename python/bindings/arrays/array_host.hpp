// NumPy's views of a DeviceArray in pinned or managed memory; device memory is refused.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_host(ArrayClass& type);

}  // namespace bascule::python
