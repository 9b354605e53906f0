// What a driver's assembler refuses in a text whose syntax is right.
#pragma once

#include "ptx/module.hpp"

namespace emulated::ptx {

/// Functions that CUDA itself provides inside kernels.
bool is_provided(std::string_view function) noexcept;

/// Throws SyntaxError where parameters or constants are larger than the architecture allows, or where a
/// function or variable is used and not defined.
void verify(const Module& module);

}  // namespace emulated::ptx
