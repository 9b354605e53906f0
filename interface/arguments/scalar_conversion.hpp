// Scalars to declared types: the exact rules. Used by the argument pack alone.
#pragma once

#include <cstddef>
#include <string>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// Writes `scalar` as the parameter's declared type. Throws: ArgumentError (type, overflow) that names both
/// types and the range.
///
/// A float does not go into an integer, even 2.0; only 0 and 1 go into bool; True is 1; complex does not go
/// into reals; a finite value that would become infinite is an overflow; infinities and NaN pass.
void write_scalar(const Scalar& scalar, const Parameter& parameter, std::byte* out);

/// As messages show it: "3", "True", "the float 2.0", "the complex 1+2j".
std::string describe(const Scalar& scalar);

}  // namespace bascule
