// Mangled names as C++ text, of any length: the C++ library's demangler gives up beyond 1024 characters.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// As the C++ library says it, by our own reader where that gives up. Empty when neither can.
std::string demangle(const std::string& mangled);

/// As a person writes it: "twice(float)". The name itself where it is not mangled.
std::string readable_name(const std::string& name);

/// Our own reader alone: the parts of the Itanium ABI's grammar that types in parameter lists use. Empty for
/// anything else.
std::string read_mangled(std::string_view mangled);

}  // namespace bascule
