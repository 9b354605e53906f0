// Which values assignment converts to an array's dtype: NumPy's casting rule 'same_kind'.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Throws: ArgumentError (type) when both dtypes are of numbers and numpy.can_cast(from, to, "same_kind") is false.
void require_same_kind(const pybind11::object& from, const pybind11::object& to);

/// Host values as a NumPy array of that dtype, by the same rule; integers that are not in an array are checked
/// against the dtype's range instead, so that 7 fits uint8. An array is returned as it is for a dtype that is
/// not of numbers. Throws: ArgumentError (type); OverflowError.
pybind11::object cast_values(const pybind11::object& values, const pybind11::object& dtype);

}  // namespace bascule::python
