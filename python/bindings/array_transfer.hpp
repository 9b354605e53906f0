// Copies between device arrays and the host: `copy_to_host` and `copy_from_host`.
#pragma once

#include "array_object.hpp"

namespace bascule::python {

void bind_array_transfer(ArrayClass& type);

}  // namespace bascule::python
