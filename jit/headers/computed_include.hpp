// The headers that `#include MACRO(x)` may name, with every definition that the macros may have.
#pragma once

#include <optional>
#include <unordered_map>

#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {

/// All definitions of each macro in the texts that a compile may read, as MacroDefinition::rest.
using MacroDefinitions = std::unordered_map<std::string_view, std::vector<std::string_view>>;

/// Expands the directive with each definition of each macro in it, and with the macro undefined, because only a
/// preprocessor knows which one is active there. Results that are not a header's name are skipped: they would be
/// compile errors. Returns nothing if an expansion is not understood or needs a macro that the compiler may define.
std::optional<std::vector<Include>> headers_named_by(const ComputedInclude& include,
                                                     const MacroDefinitions& definitions);

}  // namespace bascule
