// The table of compile options. Checks, NVRTC's arguments, the refusals of `extra`, and everything that Python has of
// an option (keyword, attribute, flags, documentation, repr, hash, pickle) are made from its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bascule {

struct Arch;
struct CompileOptions;

/// One option. A new one is a member of CompileOptions, a row here, and a line in Python's stub.
struct CompileOption {
    /// What the member's texts are. This decides which Python values are accepted for them.
    enum class Content : std::uint8_t { text, path, macro };
    /// The values that a number may have, as a clause for messages.
    struct Range {
        int least = 0, most = 0;
        const char* meaning = "";
    };
    using Member = std::variant<bool CompileOptions::*, std::optional<bool> CompileOptions::*,
                                std::optional<int> CompileOptions::*, std::optional<Arch> CompileOptions::*,
                                std::string CompileOptions::*, std::vector<std::string> CompileOptions::*,
                                std::vector<std::pair<std::string, std::string>> CompileOptions::*>;

    const char* name;  ///< of the member, and of the keyword in Python
    Member member;
    std::string_view flags;  ///< NVRTC's flags for this option, separated by blanks
    /// What NVRTC gets for one value, before the value; nothing if the option is not an argument of NVRTC.
    std::optional<std::string_view> argument;
    const char* expected;       ///< the values that Python takes, for messages; not needed for a bool
    const char* documentation;  ///< for Python
    void (*check)(const CompileOptions& options) = nullptr;  ///< throws ArgumentError
    Content content = Content::text;
    bool in_extra = false;  ///< `extra` accepts these flags too
    Range range{};          ///< of a number
};

/// All rows, in the order in which NVRTC gets the options.
std::span<const CompileOption> compile_option_table() noexcept;

/// Throws: ArgumentError (value), which says that this value, given as text, is outside the option's range.
[[noreturn]] void fail_range(const CompileOption& option, const std::string& got);

/// Whether this element of `extra` is known to change neither which files a compile reads nor where it looks for them.
bool leaves_files_alone(std::string_view option);

/// The NVRTC option with the most similar name, "--use_fast_math" for "--use_fast_maths"; empty if none is similar.
std::string nearest_option(std::string_view option);

}  // namespace bascule
