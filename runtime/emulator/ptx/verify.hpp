// Checks that a driver's assembler makes after parsing.
#pragma once

#include "ptx/module.hpp"

namespace emulated::ptx {

/// True for functions that CUDA itself provides inside kernels.
bool is_provided(std::string_view function) noexcept;

/// Throws SyntaxError if parameters or constants are larger than the architecture allows, or if a function or variable is
/// used and not defined.
void verify(const Module& module);

}  // namespace emulated::ptx
