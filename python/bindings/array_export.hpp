// What a DeviceArray tells others of itself: `__cuda_array_interface__`.
#pragma once

#include "array_object.hpp"

namespace bascule::python {

void bind_array_export(ArrayClass& type);

}  // namespace bascule::python
