// bascule.LaunchConfig, with a row for each launch attribute, and the conversion of launch geometry.
#pragma once

#include <cstdint>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Returns (x, y, z).
py::tuple to_tuple(const Dim3& size);

/// Converts an int, or a tuple of one to three ints. `what` is the parameter's name. Throws: ArgumentError.
std::vector<std::uint64_t> to_extents(const char* what, py::handle object);

/// True for the names of LaunchConfig's attributes other than grid and block.
bool is_launch_attribute(std::string_view name) noexcept;

/// `attributes` has launch attributes by name. Throws: ArgumentError; TypeError about the arguments of `function` for
/// other names and types, as pybind11 does.
LaunchConfig to_config(const char* function, py::handle grid, py::handle block, const py::dict& attributes);

}  // namespace bascule::python
