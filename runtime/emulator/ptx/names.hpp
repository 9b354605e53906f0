// Names as C++ spells them.
#pragma once

#include <string>
#include <string_view>

namespace emulated::ptx {

/// "scale(float*, int)" for "_Z5scalePfi"; the name itself where it is not mangled.
std::string demangled(std::string_view name);

}  // namespace emulated::ptx
