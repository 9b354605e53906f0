// Operators that DeviceArray refuses, with what to use instead: arithmetic, comparison, iteration, truth.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

void bind_array_refusals(ArrayClass& type);

}  // namespace bascule::python
