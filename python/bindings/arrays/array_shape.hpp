// Other shapes of a DeviceArray's memory: `reshape`, `T`, `transpose`, `ravel`, `view`.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_shape(ArrayClass& type);

}  // namespace bascule::python
