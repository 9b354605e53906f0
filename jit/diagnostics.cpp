#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <xxhash.h>

#include <fmt/format.h>

#include <bascule/jit/diagnostics.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_shown = 10;

/// The parts of "file(12): error: text" or "At end of source: error: text"; nothing for any other line.
std::optional<Diagnostic> parse_head(std::string_view line) {
    static constexpr std::string_view at_end = "At end of source: ";
    if (line.starts_with(at_end)) {
        Diagnostic diagnostic;
        diagnostic.message = std::string(line.substr(at_end.size()));
        diagnostic.is_error = diagnostic.message.find("error") != std::string::npos;
        return diagnostic;
    }
    const std::size_t close = line.find("): ");
    const std::size_t open = close == line.npos ? line.npos : line.rfind('(', close);
    if (open == line.npos || open == 0) return std::nullopt;
    const std::string_view digits = line.substr(open + 1, close - open - 1);
    const bool number =
        !digits.empty() && digits.size() < 9 &&
        std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!number) return std::nullopt;
    const std::string_view message = line.substr(close + 3);
    const std::string_view kind = message.substr(0, message.find(':'));
    const bool is_error = kind.find("error") != kind.npos;
    const bool is_message = is_error || kind.starts_with("warning") || kind.starts_with("remark");
    if (!is_message) return std::nullopt;
    Diagnostic diagnostic;
    diagnostic.is_error = is_error;
    diagnostic.file = std::string(line.substr(0, open));
    diagnostic.line = std::stoi(std::string(digits));
    diagnostic.message = std::string(message);
    return diagnostic;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

/// Canonical places in one line become the user's: "NAME(2): note" is "kernels.cu:2: note", and a template's
/// "at line 2" counts from the source's first line.
std::string place_line(std::string line, const Source& source, const std::string& canonical) {
    const auto number_at = [&](std::size_t begin) {
        const std::size_t end = std::min(line.find_first_not_of("0123456789", begin), line.size());
        const bool is_number = end > begin && end - begin < 9;
        return std::pair(is_number ? std::stoi(line.substr(begin, end - begin)) : 0, end);
    };
    static constexpr std::string_view at_line = " at line ";
    const std::size_t at = line.rfind(at_line);
    if (at != line.npos) {
        const std::size_t begin = at + at_line.size();
        const auto [number, end] = number_at(begin);
        // "at line 3" is in the same file as the message, "at line 3 of FILE" in another.
        const bool ours = end == line.size() || std::string_view(line).substr(end) == " of " + canonical;
        if (number > 0 && ours) {
            line = line.substr(0, begin) + std::to_string(number + source.first_line - 1) + line.substr(end);
        }
    }
    if (line.starts_with(canonical + "(")) {
        const auto [number, end] = number_at(canonical.size() + 1);
        if (number > 0 && line.compare(end, 1, ")") == 0) {
            line = fmt::format("{}:{}{}", source.name, number + source.first_line - 1, line.substr(end + 1));
        }
    }
    replace_all(line, canonical, source.name);
    return line;
}

std::string place_text(std::string_view text, const Source& source, const std::string& canonical) {
    std::string placed;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        placed += place_line(std::string(text.substr(start, end - start)), source, canonical) + "\n";
        start = end + 1;
    }
    return placed;
}

std::string place(const Diagnostic& diagnostic, const Source& source, const std::string& canonical) {
    if (diagnostic.line == 0) return source.name + ": at the end of the text";
    if (diagnostic.file != canonical) return fmt::format("{}:{}", diagnostic.file, diagnostic.line);
    return fmt::format("{}:{}", source.name, diagnostic.line + source.first_line - 1);
}

/// The line that stands `line` lines down the text, from 1.
std::string_view line_of(std::string_view text, int line) {
    for (int i = 1; i < line; ++i) {
        const std::size_t end = text.find('\n');
        if (end == text.npos) return {};
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find('\n'));
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
}

/// What is missing at the end of one line is reported at the first word of the next: then the line before,
/// indented as NVRTC indents, says more than the one shown.
std::string line_before(const Diagnostic& diagnostic, const Source& source, const std::string& canonical) {
    if (diagnostic.file != canonical || diagnostic.message.find("expected a") == std::string::npos) return {};
    const std::string_view body = diagnostic.body;
    const std::size_t end = body.find('\n');
    if (end == body.npos) return {};
    const std::size_t caret = body.substr(end + 1).find('^');
    if (caret == body.npos || caret != body.find_first_not_of(" \t")) return {};
    for (int line = diagnostic.line - 1; line > 0; --line) {
        const std::string_view text = line_of(source.text, line);
        if (text.find_first_not_of(" \t") != text.npos) return fmt::format("  {}\n", text);
    }
    return {};
}

std::string render(const Diagnostic& diagnostic, const Source& source, const std::string& canonical) {
    return fmt::format("{}: {}\n{}{}", place(diagnostic, source, canonical), diagnostic.message,
                       line_before(diagnostic, source, canonical),
                       place_text(diagnostic.body, source, canonical));
}

/// The header that could not be opened, if that is what went wrong.
std::string missing_header(const std::string& message) {
    if (message.find("open source file") == message.npos) return {};
    const std::size_t begin = message.find('"');
    const std::size_t end = message.find('"', begin + 1);
    return end == message.npos ? std::string() : message.substr(begin + 1, end - begin - 1);
}

std::string help_for_header(const std::string& header) {
    struct Package {
        std::string_view prefix, package;
    };
    static constexpr std::array packages = {
        Package{"cuda/", "nvidia-cuda-cccl"},
        Package{"cub/", "nvidia-cuda-cccl"},
        Package{"thrust/", "nvidia-cuda-cccl"},
        Package{"nv/", "nvidia-cuda-cccl"},
        Package{"crt/", "nvidia-cuda-crt"},
        Package{"cuda", "nvidia-cuda-runtime"},
        Package{"cooperative_groups", "nvidia-cuda-runtime"},
        Package{"mma.h", "nvidia-cuda-runtime"},
        Package{"curand", "nvidia-curand"},
    };
    for (const Package& row : packages) {
        if (header.starts_with(row.prefix)) {
            return fmt::format("help: {} comes with `pip install {}` or a CUDA toolkit.\n", header,
                               row.package);
        }
    }
    static constexpr std::array standard = {
        std::string_view("cstdint"),  std::string_view("type_traits"), std::string_view("algorithm"),
        std::string_view("array"),    std::string_view("cmath"),       std::string_view("vector"),
        std::string_view("iostream"), std::string_view("limits"),      std::string_view("utility"),
        std::string_view("tuple"),    std::string_view("stdint.h"),    std::string_view("stdio.h"),
        std::string_view("math.h"),   std::string_view("cstddef")};
    if (std::find(standard.begin(), standard.end(), header) != standard.end()) {
        return fmt::format(
            "help: NVRTC has no host headers. Mathematical functions and printf need none; for <{0}> try "
            "<cuda/std/{0}>.\n",
            header);
    }
    return fmt::format("help: add the directory of {} to include_paths, or its text to headers.\n", header);
}

}  // namespace

std::string canonical_name(const std::string& text) {
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    return fmt::format("/bascule/{:016x}{:016x}.cu", hash.high64, hash.low64);
}

std::vector<Diagnostic> parse_log(const std::string& log) {
    std::vector<Diagnostic> diagnostics;
    bool open = false;  // lines belong to the last diagnostic until a blank one
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        const std::string_view line = std::string_view(log).substr(start, end - start);
        start = end + 1;
        if (auto head = parse_head(line)) {
            diagnostics.push_back(std::move(*head));
            open = true;
        } else if (line.find_first_not_of(" \r") == line.npos) {
            open = false;
        } else if (open) {
            diagnostics.back().body += std::string(line) + "\n";
        }
    }
    return diagnostics;
}

bool concerns_name_expression(const Diagnostic& diagnostic) { return diagnostic.file == "__nv_name_map"; }

std::string name_expression_of(const Diagnostic& diagnostic) {
    // NVRTC's own source line; the message spells the expression with blanks between all tokens.
    static constexpr std::string_view lead = "#pragma nv_mangled_name ";
    const std::size_t at = diagnostic.body.find(lead);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + lead.size();
    return diagnostic.body.substr(begin, diagnostic.body.find('\n', begin) - begin);
}

std::string readable_log(const std::string& log, const Source& source) {
    return place_text(log, source, canonical_name(source.text));
}

std::string explain_failure(const std::vector<Diagnostic>& diagnostics, const std::string& log,
                            const Source& source) {
    const std::string canonical = canonical_name(source.text);
    std::string text;
    std::string help;
    std::size_t errors = 0;
    for (const Diagnostic& diagnostic : diagnostics) {
        if (!diagnostic.is_error) continue;
        if (++errors <= most_shown) text += render(diagnostic, source, canonical);
        const std::string header = missing_header(diagnostic.message);
        if (help.empty() && !header.empty()) help = help_for_header(header);
    }
    if (errors == 0) {
        text = place_text(log, source, canonical);  // not of a form that we know: the assembler's, say
        while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
        return fmt::format("{} does not compile:\n{}", source.name, text);
    }
    if (errors > most_shown)
        text += fmt::format("... and {} more {}; .log has them all.\n", errors - most_shown,
                            errors - most_shown == 1 ? "error" : "errors");
    text += help;
    while (text.ends_with('\n')) text.pop_back();
    return fmt::format("{} does not compile:\n{}", source.name, text);
}

}  // namespace bascule
