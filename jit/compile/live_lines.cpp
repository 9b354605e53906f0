#include <algorithm>
#include <string_view>

#include <bascule/jit/compile/live_lines.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>

namespace bascule {
namespace {

constexpr std::string_view mark = "unknown attribute \"bascule_live\"";

/// A message of the log, with the blank line behind it.
std::string_view message_at(std::string_view log, std::size_t at) {
    const std::size_t blank = log.find("\n\n", at);
    return log.substr(at, blank == log.npos ? log.npos : blank + 2 - at);
}

}  // namespace

std::string marks_of_live_lines(const Program& program) {
    const bool stops_at_warnings = std::ranges::any_of(
        program.options.extra, [](const std::string& option) { return option.find("error") != option.npos; });
    if (stops_at_warnings) return {};
    return "#undef __global__\n"
           "#define __global__ __attribute__((global)) __attribute__((bascule_live))\n";
}

LiveLines take_live_lines(std::string& log, const Program& program) {
    const std::string canonical = canonical_name(program.source.text);
    LiveLines lines;
    std::string kept;
    bool follows_mark = false;
    for (std::size_t at = 0; at < log.size();) {
        const std::string message(message_at(log, at));
        at += message.size();
        const bool is_mark = message.substr(0, message.find('\n')).find(mark) != message.npos;
        // NVRTC says behind the first warning how to suppress it.
        if (!is_mark && !(follows_mark && message.starts_with("Remark: "))) kept += message;
        follows_mark = is_mark;
        if (!is_mark) continue;
        for (const Diagnostic& diagnostic : parse_log(message)) {
            if (diagnostic.file == canonical)
                lines.insert(line_in_text(program.source.text, diagnostic.line));
        }
    }
    log = std::move(kept);
    return lines;
}

}  // namespace bascule
