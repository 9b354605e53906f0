// PTX text -> ptx::Module.
#pragma once

#include <string_view>

#include "ptx/module.hpp"

namespace emulated::ptx {

/// The result borrows `text`. Throws: SyntaxError.
Module parse(std::string_view text);

}  // namespace emulated::ptx
