// What a DeviceArray does not do, and what to say instead: arithmetic, comparison, iteration, truth.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_refusals(ArrayClass& type);

}  // namespace bascule::python
