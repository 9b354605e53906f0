#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <bascule/jit/compile/declared_lines.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>

namespace bascule {
namespace {

constexpr std::string_view mark = "bascule_declared";

/// Returns the message that begins at `at`, including the blank line that ends it.
std::string_view message_at(std::string_view log, std::size_t at) {
    const std::size_t blank = log.find("\n\n", at);
    return log.substr(at, blank == log.npos ? log.npos : blank + 2 - at);
}

/// Returns 12 for "... FILE(12): ...": the last place of the message in `file`. Returns 0 if not found.
int last_line_in(const std::string& message, const std::string& file) {
    const std::size_t at = message.rfind(file + "(");
    return at == message.npos ? 0 : std::atoi(message.c_str() + at + file.size() + 1);
}

}  // namespace

std::string question_of_declared_lines(const Program& program) {
    const CompileOptions& options = program.options;
    const bool stops_at_warnings = std::ranges::any_of(
        options.extra, [](const std::string& option) { return option.find("error") != option.npos; });
    const bool is_plain = options.defines.empty() && program.source.text.find('#') == std::string::npos;
    if (stops_at_warnings || is_plain) return {};
    return "#undef __global__\n"
           "#define __global__ __attribute__((global)) __attribute__((deprecated(\"bascule_declared\")))\n";
}

DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions) {
    if (log.find(mark) == log.npos) return {};
    const std::string canonical = canonical_name(program.source.text);
    std::ranges::sort(expressions);  // the compiler numbers them in this order
    expressions.erase(std::unique(expressions.begin(), expressions.end()), expressions.end());
    DeclaredLines lines;
    std::string kept;
    bool follows_answer = false;
    for (std::size_t at = 0; at < log.size();) {
        const std::string message(message_at(log, at));
        at += message.size();
        const bool is_answer = message.find(mark) != message.npos;
        // After the first warning, NVRTC prints a remark on how to suppress it.
        if (!is_answer && !(follows_answer && message.starts_with("Remark: "))) kept += message;
        follows_answer = is_answer;
        const int number = last_line_in(message, "__nv_name_map");
        if (!is_answer || number < 2 || static_cast<std::size_t>(number) > expressions.size() + 1) continue;
        const int line = last_line_in(message, canonical);
        lines[without_blanks(expressions[static_cast<std::size_t>(number) - 2])] =
            line == 0 ? 0 : line_in_text(program.source.text, line);
    }
    log = std::move(kept);
    return lines;
}

}  // namespace bascule
