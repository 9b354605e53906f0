// One message of the compiler, as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bascule {

/// What a compiler says about one place of a text.
struct Diagnostic {
    enum class Severity : std::uint8_t { error, warning, remark, note };

    Severity severity = Severity::error;
    std::string number{};   ///< NVRTC's own, where it gives one: "177-D", as in `-diag-suppress=177`
    std::string file{};     ///< empty: of no file
    int line = 0;           ///< in `file`, from 1; 0: of no line
    int column = 0;         ///< in characters, from 1; 0: not known
    std::string message{};  ///< without severity and place; what belongs to it stands in lines of its own
    std::vector<Diagnostic> notes{};  ///< candidates, declarations, and the instantiations that led here
    std::string source_line{};        ///< the line, as it stands in the file; empty: not known

    bool is_error() const noexcept { return severity == Severity::error; }
    bool operator==(const Diagnostic&) const = default;
};

/// "error", "warning", "remark", "note".
constexpr const char* to_string(Diagnostic::Severity severity) noexcept {
    constexpr const char* names[] = {"error", "warning", "remark", "note"};
    return names[static_cast<std::size_t>(severity)];
}

}  // namespace bascule
