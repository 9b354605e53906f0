// Converts scalars to declared types, for the argument pack and for the elements of tuples.
#pragma once

#include <bascule/interface/arguments/argument_value.hpp>

namespace bascule {

/// Writes `scalar` as the parameter's declared type. Throws: ArgumentError (type, value, overflow) that names the
/// declared type and the value.
///
/// Integer parameters refuse floats, even 2.0; bool takes only 0 and 1; True counts as 1; real types refuse complex
/// numbers. A finite value that would become infinite is an overflow; infinities and NaN are accepted by types that
/// have them.
void write_scalar(const Scalar& scalar, const Parameter& parameter, std::byte* out);

/// The scalar in messages: "3", "True", "the float 2.0", "the complex 1+2j".
std::string describe(const Scalar& scalar);

}  // namespace bascule
