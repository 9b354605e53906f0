// A text's #include lines and __has_include probes, whatever #if they are in, and whether that is all that it
// asks of the file system. And headers that are texts, as the compiler gets them.
#pragma once

#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// One header that a text names.
struct Include {
    std::string name;
    bool quoted = false;    ///< "name", not <name>
    bool next = false;      ///< #include_next: the search goes on behind the directory of the text
    bool is_probe = false;  ///< __has_include: the header is looked for, not read

    bool operator==(const Include&) const = default;
};

/// An #include whose name only a preprocessor can know: #include MACRO(x).
struct ComputedInclude {
    std::string tokens;  ///< behind `include`, up to the end of the line
    bool next = false;   ///< #include_next

    auto operator<=>(const ComputedInclude&) const = default;
};

/// `#define NAME REST`: `rest` begins directly behind the name.
struct MacroDefinition {
    std::string name, rest;
    bool pastes = false;  ///< has a ## that may join what it is called with to __has_include or the like

    bool operator==(const MacroDefinition&) const = default;
};

/// What a text asks of the file system. `includes` is complete unless one of the flags says otherwise: a text
/// is doubtful until it is proven to be plain.
struct IncludeDirectives {
    /// Named by `#include "x"`, `#include <x>`, or `__has_include` of either directly in an #if or #elif. One
    /// header too many costs a look; one too few would be a stale hit.
    std::vector<Include> includes;
    std::vector<ComputedInclude> computed;
    /// A macro that stands for __has_include is defined, or used with a literal name, as CCCL does. Its
    /// arguments may be macros.
    bool wraps_probe = false;
    /// #embed, __has_include in any other form, __TIME__, or characters that compilers read differently.
    bool doubtful = false;
    bool pastes = false;                       ///< has ##
    std::set<std::string> fragments;           ///< words that ## may join to __has_include and the like
    std::vector<MacroDefinition> definitions;  ///< all, whatever #if they are in
};

/// Reads a text in linear time. Comments and literals are told apart from code where that decides, and where
/// every compiler agrees on where they end.
IncludeDirectives include_directives(std::string_view text);

/// `options.headers` with names that lead to where a file's would: NVRTC knows such headers by their whole names alone,
/// while `#include "y.h"` in a/x.h means a/y.h where there is one. Every line keeps its number.
std::vector<std::pair<std::string, std::string>> memory_headers(const CompileOptions& options);

/// The text with joined lines as one. Compilers differ in whether a blank may stand behind the backslash.
std::string unjoined(std::string_view text, bool with_blanks);
/// Whether a word may have this character: those of some compilers have a dollar sign or letters beyond ASCII.
bool is_word(char c);
/// Whether a word makes __has_include, __TIME__ or the like together with others, but is none by itself.
bool is_fragment(std::string_view word);
/// Whether ## can make __has_include, __TIME__ or another such word of these.
bool can_paste_probe(const std::set<std::string>& fragments);

}  // namespace bascule
