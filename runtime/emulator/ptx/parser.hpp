// Parses PTX text into a ptx::Module.
#pragma once

#include <string_view>

#include "ptx/module.hpp"

namespace emulated::ptx {

/// The result borrows `text`. A target above `newest_architecture` (80 for sm_80) is an error; 0 accepts all targets.
/// Throws: SyntaxError.
Module parse(std::string_view text, int newest_architecture = 0);

}  // namespace emulated::ptx
