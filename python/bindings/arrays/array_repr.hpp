// `repr` of a DeviceArray: its values, as NumPy prints them.
#pragma once

#include <cstdint>
#include <string>

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Never throws: where the values cannot be read, it describes the array and gives the reason.
std::string repr_of_array(const pybind11::object& array);

/// The same for other displays, a dict: place, values (the ends of an array with more than `most` elements), and
/// why_not, which is empty where the values were read. Never throws.
pybind11::dict facts_of_array(const pybind11::object& array, std::uint64_t most);

}  // namespace bascule::python
