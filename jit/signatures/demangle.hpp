// Demangles names of any length; the C++ library's demangler fails beyond 1024 characters.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// The text of the C++ library's demangler or, if that fails, of `read_mangled`. Empty if both fail.
std::string demangle(const std::string& mangled);

/// A readable form: "twice(float)". Returns names that are not mangled unchanged.
std::string readable_name(const std::string& name);

/// Bascule's own demangler, for the parts of the Itanium ABI's grammar that types in parameter lists use. Empty for
/// other names.
std::string read_mangled(std::string_view mangled);

}  // namespace bascule
