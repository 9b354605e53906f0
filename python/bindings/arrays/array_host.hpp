// What NumPy sees of a DeviceArray: pinned and managed memory as it lies, and a refusal for device memory.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_host(ArrayClass& type);

}  // namespace bascule::python
