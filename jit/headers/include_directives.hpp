// Finds a text's #include lines and __has_include probes, whatever #if they are in, and whether these are all its uses
// of the file system. Also prepares in-memory headers for the compiler.
#pragma once

#include <compare>
#include <set>

#include <bascule/jit/options/compile_options.hpp>

namespace bascule {

/// One header that a text names.
struct Include {
    std::string name;
    bool quoted = false;    ///< "name", not <name>
    bool next = false;      ///< #include_next: the search continues after the directory of the text
    bool is_probe = false;  ///< __has_include: the header is searched but not read

    bool operator==(const Include&) const = default;
};

/// An #include whose name only a preprocessor can know: #include MACRO(x).
struct ComputedInclude {
    std::string tokens;  ///< after `include`, up to the end of the line
    bool next = false;   ///< #include_next

    auto operator<=>(const ComputedInclude&) const = default;
};

/// `#define NAME REST`: `rest` begins directly after the name.
struct MacroDefinition {
    std::string name, rest;
    bool pastes = false;  ///< has a ## that may join an argument to __has_include or a similar word

    bool operator==(const MacroDefinition&) const = default;
};

/// A text's uses of the file system. `includes` is complete unless one of the flags is set. A text counts as doubtful
/// unless it is proven not to be.
struct IncludeDirectives {
    /// Headers named by `#include "x"`, `#include <x>`, or `__has_include` of either directly in an #if or #elif. A
    /// superfluous header costs a look-up; a missing one would cause a stale hit.
    std::vector<Include> includes;
    std::vector<ComputedInclude> computed;
    /// The text defines a macro that stands for __has_include, or uses one with a literal name, as CCCL does. Its
    /// arguments may be macros.
    bool wraps_probe = false;
    /// #embed, __has_include in any other form, __TIME__, or characters that compilers read differently.
    bool doubtful = false;
    bool pastes = false;                       ///< has ##
    std::set<std::string> fragments;           ///< words that ## may join to __has_include and similar words
    std::vector<MacroDefinition> definitions;  ///< all, whatever #if they are in
};

/// Reads a text in linear time. Comments and literals are distinguished from code only if that makes a difference and
/// all compilers agree on where they end.
IncludeDirectives include_directives(std::string_view text);

/// `options.headers` with the names in their #include lines replaced: NVRTC finds in-memory headers only by their whole
/// names, but `#include "y.h"` in a/x.h means a/y.h if that exists. Line numbers do not change.
std::vector<std::pair<std::string, std::string>> memory_headers(const CompileOptions& options);

/// Joins lines that end with a backslash. `with_blanks`: blanks may follow the backslash, as some compilers allow.
std::string unjoined(std::string_view text, bool with_blanks);
/// Whether a word may have this character. Some compilers allow dollar signs and letters beyond ASCII.
bool is_word(char c);
/// Whether the word is a part of __has_include, __TIME__ or a similar word, but not the whole.
bool is_fragment(std::string_view word);
/// Whether ## can join these to __has_include, __TIME__ or a similar word.
bool can_paste_probe(const std::set<std::string>& fragments);

}  // namespace bascule
