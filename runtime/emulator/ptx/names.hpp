// Demangles C++ names.
#pragma once

#include <string>
#include <string_view>

namespace emulated::ptx {

/// "scale(float*, int)" for "_Z5scalePfi"; a name that is not mangled is returned as it is.
std::string demangled(std::string_view name);

}  // namespace emulated::ptx
