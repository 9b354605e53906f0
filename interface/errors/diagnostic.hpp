// One message of the compiler, as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bascule {

/// A compiler's message about one place in a text.
struct Diagnostic {
    enum class Severity : std::uint8_t { error, warning, remark, note };

    Severity severity = Severity::error;
    std::string number{};   ///< NVRTC's number, such as "177-D" for `-diag-suppress=177`; may be empty
    std::string file{};     ///< empty if the message names no file
    int line = 0;           ///< in `file`, counted from 1; 0 if the message names no line
    int column = 0;         ///< in characters, counted from 1; 0 if unknown
    std::string message{};  ///< without severity and place; details follow on lines of their own
    std::vector<Diagnostic> notes{};  ///< candidates, declarations, and the instantiations that led here
    std::string source_line{};        ///< the line of the file; empty if unknown

    bool is_error() const noexcept { return severity == Severity::error; }
    bool operator==(const Diagnostic&) const = default;
};

/// "error", "warning", "remark", "note".
constexpr const char* to_string(Diagnostic::Severity severity) noexcept {
    constexpr const char* names[] = {"error", "warning", "remark", "note"};
    return names[static_cast<std::size_t>(severity)];
}

}  // namespace bascule
