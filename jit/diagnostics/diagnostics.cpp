#include <algorithm>

#include <fmt/format.h>

#include <bascule/jit/diagnostics/diagnostics.hpp>

namespace bascule {
namespace {

using Severity = Diagnostic::Severity;

constexpr std::string_view end_of_source = "At end of source";
constexpr std::string_view blanks = " \t\r";
constexpr std::size_t indentation = 2;  // of NVRTC's source lines and carets

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// The value of a number (0 without digits) and the position after it.
std::pair<int, std::size_t> number_at(std::string_view text, std::size_t begin) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const bool is_number = end > begin && end - begin < 9;
    return {is_number ? std::stoi(std::string(text.substr(begin, end - begin))) : 0, end};
}

// --- One line of a log -------------------------------------------------------------------------------------

/// Parses "warning #177-D: text" into severity, number and text; nothing without a severity.
std::optional<Diagnostic> parse_words(std::string_view words) {
    static constexpr std::pair<std::string_view, Severity> kinds[] = {{"error", Severity::error},
                                                                      {"catastrophic error", Severity::error},
                                                                      {"internal error", Severity::error},
                                                                      {"fatal", Severity::error},
                                                                      {"warning", Severity::warning},
                                                                      {"remark", Severity::remark},
                                                                      {"note", Severity::note},
                                                                      {"Note", Severity::note}};
    const std::size_t colon = words.find(':');
    if (colon == words.npos) return std::nullopt;
    std::string_view head = trimmed(words.substr(0, colon));
    std::string_view number;
    if (const std::size_t hash = head.find(" #"); hash != head.npos) {
        number = head.substr(hash + 2);
        head = head.substr(0, hash);
    }
    for (const auto& [word, severity] : kinds) {
        if (head != word) continue;
        Diagnostic diagnostic;
        diagnostic.severity = severity;
        diagnostic.number = std::string(number);
        diagnostic.message = std::string(trimmed(words.substr(colon + 1)));
        return diagnostic;
    }
    return std::nullopt;
}

/// Parses "FILE(12): error: text".
std::optional<Diagnostic> parse_placed(std::string_view line) {
    const std::size_t close = line.find("): ");
    const std::size_t open = close == line.npos ? line.npos : line.rfind('(', close);
    if (open == line.npos || open == 0 || blanks.find(line.front()) != blanks.npos) return std::nullopt;
    const auto [number, end] = number_at(line, open + 1);
    if (number == 0 || end != close) return std::nullopt;
    std::optional<Diagnostic> diagnostic = parse_words(line.substr(close + 3));
    if (!diagnostic) return std::nullopt;
    diagnostic->file = std::string(line.substr(0, open));
    diagnostic->line = number;
    return diagnostic;
}

/// Parses the line that begins a message, with a place or with the name of the tool that printed it.
std::optional<Diagnostic> parse_head(std::string_view line) {
    if (auto placed = parse_placed(line)) return placed;
    if (line.starts_with("Note #")) return parse_words(line);
    if (line.starts_with(end_of_source)) {
        auto diagnostic = parse_words(line.substr(std::min(end_of_source.size() + 2, line.size())));
        if (diagnostic) diagnostic->file = std::string(end_of_source);
        return diagnostic;
    }
    for (const std::string_view part : {"nvrtc: ", "ptxas ", "Command-line "}) {
        if (!line.starts_with(part)) continue;
        line.remove_prefix(part.size());
        // "application ptx input, line 26; error   : text"
        if (const std::size_t at = line.find("; "); at < line.find(':')) line.remove_prefix(at + 2);
        return parse_words(line);
    }
    return std::nullopt;
}

/// Parses one line of "detected during": 'instantiation of "f" at line 3 of FILE'.
Diagnostic parse_context(std::string_view words, const std::string& file) {
    static constexpr std::string_view at_line = " at line ";
    Diagnostic note;
    note.severity = Severity::note;
    const bool is_frame = !words.starts_with("[");
    if (const std::size_t at = words.rfind(at_line); is_frame && at != words.npos) {
        const auto [number, end] = number_at(words, at + at_line.size());
        const std::string_view rest = words.substr(end);
        if (number > 0 && (rest.empty() || rest.starts_with(" of "))) {
            note.line = number;
            note.file = rest.empty() ? file : std::string(rest.substr(4));
            words = words.substr(0, at);
        }
    }
    note.message = is_frame ? fmt::format("detected during {}", trimmed(words)) : std::string(words);
    return note;
}

/// Reads the lines that belong to one message.
class Body {
  public:
    explicit Body(Diagnostic& diagnostic) : diagnostic_(&diagnostic), current_(&diagnostic) {}

    void read(std::string_view line) {
        static constexpr std::string_view during = "detected during";
        const std::string_view words = trimmed(line);
        if (words == "^") {
            take_source_line(line);
        } else if (auto note = parse_head(line); note && note->severity == Severity::note) {
            current_ = &diagnostic_->notes.emplace_back(std::move(*note));
        } else if (words.starts_with(during)) {
            in_context_ = true;
            current_ = diagnostic_;
            const std::string_view rest = trimmed(words.substr(during.size()));
            if (rest != ":") diagnostic_->notes.push_back(parse_context(rest, diagnostic_->file));
        } else if (in_context_) {
            diagnostic_->notes.push_back(parse_context(words, diagnostic_->file));
        } else {
            current_->message += "\n" + std::string(line);
        }
    }

  private:
    /// The line before a caret is the source line; it was added to the message and is removed from it.
    void take_source_line(std::string_view caret) {
        const std::size_t newline = current_->message.rfind('\n');
        if (newline == std::string::npos) return;
        std::string line = current_->message.substr(newline + 1);
        current_->message.resize(newline);
        line.erase(0, std::min(line.find_first_not_of(' '), indentation));
        const std::size_t bytes = caret.find('^') - std::min(caret.find('^'), indentation);
        const auto begins = [](unsigned char byte) { return (byte & 0xc0U) != 0x80U; };
        const std::size_t within = std::min(bytes, line.size());
        const auto characters =
            std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(within),
                          [&](char c) { return begins(static_cast<unsigned char>(c)); });
        current_->column = static_cast<int>(characters) + static_cast<int>(bytes - within) + 1;
        current_->source_line = std::move(line);
    }

    Diagnostic* diagnostic_;
    Diagnostic* current_;
    bool in_context_ = false;
};

/// Trims all lines of a message and indents the continuation lines equally.
void tidy(Diagnostic& diagnostic) {
    std::string tidied;
    for (std::size_t start = 0; start <= diagnostic.message.size();) {
        const std::size_t end = std::min(diagnostic.message.find('\n', start), diagnostic.message.size());
        const std::string_view line =
            trimmed(std::string_view(diagnostic.message).substr(start, end - start));
        tidied += (start == 0 ? "" : "\n") + std::string(line);
        start = end + 1;
    }
    diagnostic.message = std::move(tidied);
    for (Diagnostic& note : diagnostic.notes) tidy(note);
}

// --- The user's places -------------------------------------------------------------------------------------

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

int user_line(int line, const Source& source) {
    return line_in_text(source.text, line) + source.first_line - 1;
}

/// Replaces places in a message. In messages about the user's text, "at line 3" is a line of that text unless a file
/// follows; "FILE(3)" becomes "FILE:3".
std::string place_words(std::string words, const Source& source, const std::string& canonical,
                        bool about_user_text = true) {
    static constexpr std::string_view at_line = " at line ";
    for (std::size_t at = words.find(at_line); at != words.npos; at = words.find(at_line, at + 1)) {
        const std::size_t begin = at + at_line.size();
        const auto [number, end] = number_at(words, begin);
        std::string_view rest = std::string_view(words).substr(end);
        bool ours = number > 0 && about_user_text;
        if (rest.starts_with(" of ")) {
            rest.remove_prefix(4);
            if (rest.starts_with('"')) rest.remove_prefix(1);
            ours = number > 0 && rest.starts_with(canonical);
        }
        if (ours) words.replace(begin, end - begin, std::to_string(user_line(number, source)));
    }
    if (words.starts_with(canonical + "(")) {
        const auto [number, end] = number_at(words, canonical.size() + 1);
        if (number > 0 && words.compare(end, 1, ")") == 0) {
            words = fmt::format("{}:{}{}", source.name, user_line(number, source), words.substr(end + 1));
        }
    }
    replace_all(words, canonical, source.name);
    return words;
}

void place(Diagnostic& diagnostic, const Source& source, const std::string& canonical) {
    diagnostic.message = place_words(std::move(diagnostic.message), source, canonical,
                                     diagnostic.file == canonical || diagnostic.file == end_of_source);
    for (Diagnostic& note : diagnostic.notes) place(note, source, canonical);
    if (is_at_end_of_text(diagnostic)) {
        std::string_view text = source.text;
        text = text.substr(0, text.find_last_not_of("\r\n") + 1);
        diagnostic.file = source.name;
        diagnostic.line = static_cast<int>(std::ranges::count(text, '\n')) + source.first_line;
    } else if (diagnostic.file == canonical) {
        if (diagnostic.source_line.empty())
            diagnostic.source_line = source_line_of(source.text, line_in_text(source.text, diagnostic.line));
        diagnostic.file = source.name;
        diagnostic.line = user_line(diagnostic.line, source);
    }
}

/// The beginning of the line that NVRTC adds for a name expression.
constexpr std::string_view name_expression_lead = "#pragma nv_mangled_name ";

/// NVRTC 12.0 shows no source line for a name expression; the last message spells it, with blanks between tokens.
void show_name_expressions(std::vector<Diagnostic>& diagnostics) {
    constexpr std::string_view opening = "Input name expression was: \"";
    for (const Diagnostic& last : std::vector(diagnostics)) {
        const std::size_t at = last.message.find(opening);
        if (at == last.message.npos) continue;
        std::string expression = last.message.substr(at + opening.size());
        expression.resize(expression.find_last_not_of('"') + 1);
        for (Diagnostic& each : diagnostics) {
            if (concerns_name_expression(each) && each.line == last.line && each.source_line.empty())
                each.source_line = std::string(name_expression_lead) + expression;
        }
    }
}

}  // namespace

std::vector<Diagnostic> parse_log(const std::string& log) {
    std::vector<Diagnostic> diagnostics;
    std::optional<Body> body;  // lines belong to the last message until a blank one
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        const std::string_view line = std::string_view(log).substr(start, end - start);
        start = end + 1;
        if (trimmed(line).empty()) {
            body.reset();
            continue;
        }
        auto head = parse_head(line);
        if (head && head->severity != Severity::note) {
            const bool has_lines = !head->file.empty();  // the others say all on one line
            body.reset();
            diagnostics.push_back(std::move(*head));
            if (has_lines) body.emplace(diagnostics.back());
        } else if (body) {
            body->read(line);
        }
    }
    for (Diagnostic& diagnostic : diagnostics) tidy(diagnostic);
    show_name_expressions(diagnostics);
    return diagnostics;
}

bool concerns_name_expression(const Diagnostic& diagnostic) { return diagnostic.file == "__nv_name_map"; }

std::string name_expression_of(const Diagnostic& diagnostic) {
    const std::size_t at = diagnostic.source_line.find(name_expression_lead);
    if (at == std::string::npos) return {};
    return without_blanks(diagnostic.source_line.substr(at + name_expression_lead.size()));
}

std::string without_blanks(std::string text) {
    std::erase(text, ' ');
    return text;
}

bool is_at_end_of_text(const Diagnostic& diagnostic) { return diagnostic.file == end_of_source; }

std::string readable_log(const std::string& log, const Source& source) {
    const std::string canonical = canonical_name(source.text);
    std::string placed;
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        placed += place_words(log.substr(start, end - start), source, canonical) + "\n";
        start = end + 1;
    }
    return placed;
}

std::vector<Diagnostic> at_user_places(std::vector<Diagnostic> diagnostics, const Source& source) {
    const std::string canonical = canonical_name(source.text);
    for (Diagnostic& diagnostic : diagnostics) place(diagnostic, source, canonical);
    return diagnostics;
}

}  // namespace bascule
