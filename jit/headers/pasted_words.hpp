// Finds the words that ## may join in a text. This is stricter than a check whether the text has ##.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {

/// The macros of all texts that a compile may read.
class PastingMacros {
  public:
    void add(const MacroDefinition& definition);
    /// Finds the macros that name a pasting macro. Call it after the last `add`. Returns false if such a macro has
    /// unbalanced parentheses, because then the arguments of its calls cannot be found.
    bool close();

    // NVRTC defines macros that begin with NV_ itself if <nv/target> is not included.
    bool contains(std::string_view name) const {
        return definitions_.contains(name) || name.starts_with("NV_");
    }
    /// Whether the macro's expansion may join its arguments or words of other macros.
    bool pastes(std::string_view name) const { return pasting_.contains(name) || name.starts_with("NV_"); }

  private:
    std::multimap<std::string, const MacroDefinition*, std::less<>> definitions_;
    std::set<std::string, std::less<>> pasting_;
};

/// The fragments (is_fragment) among the arguments of pasting macros in this text, also inside the call of another
/// macro. Skips definitions, which fragments_of reads. Returns nothing if compilers may disagree on the calls.
std::optional<std::set<std::string>> pasted_fragments(std::string_view text, const PastingMacros& macros);

/// The fragments in a macro's body that are not parameters.
std::set<std::string> fragments_of(const MacroDefinition& definition);

}  // namespace bascule
