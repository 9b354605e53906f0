// Reads a Signature from a name that NVRTC mangled, so that the compiler determines the parameters.
#pragma once

#include <string>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// The name expression that reflects `kernel`'s parameter list: bascule::signature<decltype(&ns::scale)>.
std::string signature_expression(const std::string& kernel);

/// Reads the lowered name of that expression. `names` are the parameters' names from the text (may be shorter). Throws:
/// Error if the name does not have that form, because of a bug in Bascule or a new NVRTC; the message shows the name.
Signature read_signature(const std::string& lowered_name, const std::string& kernel,
                         const std::vector<std::string>& names);

}  // namespace bascule
