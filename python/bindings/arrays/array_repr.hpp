// `repr` of a DeviceArray: its values, as NumPy prints them.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Never throws: where the values cannot be read, it describes the array and gives the reason.
std::string repr_of_array(const pybind11::object& array);

}  // namespace bascule::python
