// Views of a DeviceArray with another shape or dtype: `reshape`, `T`, `transpose`, `ravel`, `view`.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_shape(ArrayClass& type);

}  // namespace bascule::python
