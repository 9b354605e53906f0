// The headers that `#include MACRO(x)` may name, by every definition that the macros may have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {

/// All definitions of each macro in the texts that a compile may read, as MacroDefinition::rest.
using MacroDefinitions = std::unordered_map<std::string_view, std::vector<std::string_view>>;

/// Expands the directive with each definition of each macro that it meets, and with the macro undefined, because only a
/// preprocessor knows which of them holds there. A result that is not a header's name would be an error of the compile, and
/// names nothing. Nothing where the expansion is not understood, or needs a macro that the compiler may define by itself.
std::optional<std::vector<Include>> headers_named_by(const ComputedInclude& include,
                                                     const MacroDefinitions& definitions);

}  // namespace bascule
