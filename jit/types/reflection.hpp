// From a name that NVRTC mangled to a Signature: the compiler, not a regular expression, says what a kernel
// declares.
#pragma once

#include <string>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// The name expression that reflects `kernel`'s parameter list: bascule::signature<decltype(&ns::scale)>.
std::string signature_expression(const std::string& kernel);

/// Reads the lowered name of that expression. `names` are the parameters' names from the text (may be
/// shorter). Throws: Error when the name is not of that form (a defect of ours or a new NVRTC: the message
/// shows it).
Signature read_signature(const std::string& lowered_name, const std::string& kernel,
                         const std::vector<std::string>& names);

}  // namespace bascule
