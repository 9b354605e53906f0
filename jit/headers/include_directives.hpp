// A text's #include lines and __has_include probes, whatever #if they are in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// One header that a text names.
struct Include {
    std::string name;
    bool quoted = false;    ///< "name", not <name>
    bool next = false;      ///< #include_next: the search goes on behind the directory of the text
    bool is_probe = false;  ///< __has_include: the header is looked for, not read

    bool operator==(const Include&) const = default;
};

/// What a text asks of the file system. One header too many costs a look; one too few would be a stale hit.
struct IncludeDirectives {
    std::vector<Include> includes;
    /// Something names a header that only a preprocessor can know: #include MACRO, #embed, a probe of a
    /// macro.
    bool computed = false;
    /// The text mentions __DATE__, __TIME__ or __TIMESTAMP__.
    bool has_time = false;
};

/// Reads a text once, in linear time. Comments and literals are not told apart from code, except where an
/// #include without a literal name would otherwise make the whole program unknowable.
IncludeDirectives include_directives(std::string_view text);

}  // namespace bascule
