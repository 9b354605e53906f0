// `x[...]` and `x[...] = value` of a DeviceArray: reads what Python code wrote between the brackets.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// The view that `x[key]` is. Throws: ArgumentError (index; not_supported for what would need a copy).
ArrayView index_by(const ArrayView& array, const pybind11::object& key);

void bind_array_indexing(ArrayClass& type);

}  // namespace bascule::python
