// bascule.LaunchConfig, CompileOptions, Diagnostic and CacheStatistics, and conversion of launch geometry.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Returns (x, y, z).
pybind11::tuple to_tuple(const Dim3& size);

/// Converts an int, or a tuple of one to three ints. `what` is the parameter's name. Throws: ArgumentError.
std::vector<std::uint64_t> to_extents(const char* what, pybind11::handle object);

/// Throws: ArgumentError.
LaunchConfig to_config(pybind11::handle grid, pybind11::handle block, pybind11::handle shared_bytes,
                       bool cooperative = false, pybind11::handle cluster = {}, bool programmatic = false,
                       std::optional<int> priority = {}, std::optional<int> shared_carveout = {});

}  // namespace bascule::python
