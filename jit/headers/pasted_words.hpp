// Which words of a text ## may join: a closer look than that at whether ## is anywhere.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {

/// The macros of all texts that a compile may read.
class PastingMacros {
  public:
    void add(const MacroDefinition& definition);
    /// Finds the macros that name a pasting one. Call it after the last `add`. False: one of these begins a call that what
    /// follows the macro ends, so that no text tells what it is called with.
    bool close();

    bool contains(std::string_view name) const {
        return definitions_.contains(name) || name.starts_with("NV_");
    }
    /// Whether its expansion may join words that it is called with, or a word of another macro's.
    bool pastes(std::string_view name) const {
        return pasting_.contains(name) ||
               name.starts_with("NV_");  // NVRTC's own, where <nv/target> is not read
    }

  private:
    std::multimap<std::string, const MacroDefinition*, std::less<>> definitions_;
    std::set<std::string, std::less<>> pasting_;
};

/// The fragments of probes (is_fragment) with which this text calls pasting macros, also within a call of another macro.
/// Those in definitions are left to fragments_of. Nothing where compilers may see other calls.
std::optional<std::set<std::string>> pasted_fragments(std::string_view text, const PastingMacros& macros);

/// The fragments that a macro's expansion has whatever it is called with.
std::set<std::string> fragments_of(const MacroDefinition& definition);

}  // namespace bascule
