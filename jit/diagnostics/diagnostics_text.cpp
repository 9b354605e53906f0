// The text of a compile error: the errors that are causes, with their lines, and the number of errors that follow from them.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_shown = 10;
constexpr std::size_t most_foreign_notes = 2;
constexpr std::size_t widest_line = 160;

struct Context {
    const Source& source;
    std::string canonical;
    std::span<const std::string> library_paths;
};

/// The bytes of a character, and how many columns it takes in a terminal.
struct Character {
    std::size_t bytes = 1;
    std::size_t columns = 1;
};

Character character_at(std::string_view text, std::size_t at) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    // Most letters from U+2E80 on are wide. The exceptions, and the wide letters of Hangul before it, do not justify a
    // table here.
    const bool wide = lead >= 0xe2 && !(lead == 0xe2 && at + 1 < text.size() &&
                                        static_cast<unsigned char>(text[at + 1]) < 0xba);
    return {std::min(bytes, text.size() - at), wide ? 2U : 1U};
}

/// The source line and a caret below its column, indented by two. A very long line is cut around the caret.
std::string lines_of(const Diagnostic& diagnostic) {
    if (diagnostic.source_line.empty()) return {};
    std::string line = diagnostic.source_line;
    std::string below;
    std::size_t at = 0;
    for (int column = 1; column < diagnostic.column; ++column) {
        if (at >= line.size()) {
            below += ' ';
            continue;
        }
        const Character character = character_at(line, at);
        below += line[at] == '\t' ? std::string("\t") : std::string(character.columns, ' ');
        at += character.bytes;
    }
    const bool ascii = std::ranges::all_of(line, [](unsigned char c) { return c < 0x80; });
    if (ascii && line.size() > widest_line) {
        const std::size_t begin = at > widest_line / 2 ? at - widest_line / 2 : 0;
        const bool cut = begin + widest_line < line.size();
        line = (begin > 0 ? "..." : "") + line.substr(begin, widest_line) + (cut ? "..." : "");
        if (begin > 0) below = "   " + below.substr(std::min(begin, below.size()));
    }
    const std::string caret = diagnostic.column > 0 ? fmt::format("  {}^\n", below) : "";
    return fmt::format("  {}\n{}", line, caret);
}

/// The line before, shown because a token missing at its end is reported at the next line's first word.
std::string line_before(const Diagnostic& diagnostic, const Context& context) {
    if (diagnostic.file != context.canonical || !diagnostic.message.starts_with("expected a")) return {};
    const std::string& shown = diagnostic.source_line;
    if (static_cast<std::size_t>(diagnostic.column) != shown.find_first_not_of(" \t") + 1) return {};
    for (int line = diagnostic.line - 1; line > 0; --line) {
        const std::string_view text = source_line_of(context.source.text, line);
        if (text.find_first_not_of(" \t") != text.npos) return fmt::format("  {}\n", text);
    }
    return {};
}

std::string place_of(const Diagnostic& raw, const Diagnostic& placed, const Source& source) {
    if (is_at_end_of_text(raw)) return source.name + ": at the end of the text";
    if (placed.file.empty()) return source.name;
    return fmt::format("{}:{}", placed.file, placed.line);
}

std::string indented(std::string text) {
    for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
        text.insert(at + 1, "    ");
    return text;
}

std::string head_of(const Diagnostic& raw, const Diagnostic& placed, const Source& source) {
    return fmt::format("{}: {}: {}\n", place_of(raw, placed, source), to_string(placed.severity),
                       indented(placed.message));
}

/// Whether the note is in Bascule's or NVIDIA's headers, or has no place.
bool is_foreign(const Diagnostic& note, const Context& context) {
    if (note.file.empty() || note.file.starts_with("bascule_") || note.file.starts_with("__nv_nvrtc"))
        return true;
    return std::ranges::any_of(context.library_paths,
                               [&](const std::string& path) { return note.file.starts_with(path + "/"); });
}

std::string notes_of(const Diagnostic& raw, const Diagnostic& placed, const Context& context) {
    std::string text;
    std::size_t foreign = 0;
    for (std::size_t i = 0; i < raw.notes.size(); ++i) {
        if (is_foreign(raw.notes[i], context) && ++foreign > most_foreign_notes) continue;
        const Diagnostic& note = placed.notes[i];
        text += note.file.empty() ? fmt::format("  note: {}\n", note.message)
                                  : head_of(raw.notes[i], note, context.source);
        // Shows no line twice.
        if (note.source_line != placed.source_line || note.column != placed.column) text += lines_of(note);
    }
    if (foreign > most_foreign_notes) {
        const std::size_t more = foreign - most_foreign_notes;
        text += fmt::format("  ... {} more {}\n", more, more == 1 ? "note" : "notes");
    }
    return text;
}

std::string render(const Diagnostic& raw, const Context& context) {
    const Diagnostic placed = at_user_places({raw}, context.source).front();
    return head_of(raw, placed, context.source) + line_before(raw, context) + lines_of(placed) +
           notes_of(raw, placed, context);
}

// --- Causes and consequences -------------------------------------------------------------------------------

bool same_line(const Diagnostic& a, const Diagnostic& b) { return a.file == b.file && a.line == b.line; }

bool begins_with_one(const Diagnostic& error, std::initializer_list<std::string_view> leads) {
    return std::ranges::any_of(leads, [&](std::string_view lead) { return error.message.starts_with(lead); });
}

/// Whether this is an error that NVRTC reports for a declaration with unknown types.
bool is_broken_declaration(const Diagnostic& error) {
    return begins_with_one(error, {"attribute \"__global__\" does not apply here",
                                   "A namespace scope variable without memory space annotations",
                                   "incomplete type \"void\" is not allowed"});
}

bool is_consequence(const Diagnostic& error) {
    return is_broken_declaration(error) ||
           begins_with_one(error, {"type name is not allowed", "expected a", "identifier \""});
}

/// Whether the error is a character that C++ does not have; the rest of its line may be misread.
bool is_unknown_token(const Diagnostic* error) { return error->message.starts_with("unrecognized token"); }

struct Cause {
    const Diagnostic* error;
    std::size_t consequences = 0;
};

/// Selects the errors that are causes. One unknown type in a parameter list gives six errors on its line: the unknown
/// name is the cause. A character that C++ does not have is a cause too. After an unclosed string, the rest of the text
/// is misread.
std::vector<Cause> causes_of(const std::vector<const Diagnostic*>& errors) {
    std::vector<Cause> causes;
    for (std::size_t begin = 0, end = 0; begin < errors.size(); begin = end) {
        if (is_unclosed_string(*errors[begin])) {
            causes.push_back({errors[begin], errors.size() - begin - 1});
            break;
        }
        while (end < errors.size() && same_line(*errors[begin], *errors[end])) ++end;
        const std::span line(errors.data() + begin, end - begin);
        const auto token = std::ranges::find_if(line, is_unknown_token);
        if (token != line.end() && !errors[begin]->file.empty()) {
            causes.push_back({*token, line.size() - 1});
            continue;
        }
        const auto root =
            std::ranges::find_if(line, [](const Diagnostic* error) { return !unknown_name(*error).empty(); });
        const bool broken = std::ranges::any_of(line, [](const Diagnostic* error) {
            return is_broken_declaration(*error) || error->message == "type name is not allowed" ||
                   error->message == "expected an identifier";
        });
        const bool all_follow = std::ranges::all_of(line, [&](const Diagnostic* error) {
            return error == (root == line.end() ? nullptr : *root) || is_consequence(*error);
        });
        if (root != line.end() && broken && all_follow && !errors[begin]->file.empty()) {
            causes.push_back({*root, line.size() - 1});
        } else {
            for (const Diagnostic* error : line) causes.push_back({error, 0});
        }
    }
    return causes;
}

bool is_host_function(const Diagnostic& error, const Context& context) {
    return is_foreign(error, context) &&
           error.message.starts_with("A function without execution space annotations");
}

/// A library header for host programs gives hundreds of errors; the first one about a host function is enough. Removes
/// all other errors in library headers and returns their number; removes none if no error is about a host function.
std::size_t keep_first_of_host_header(std::vector<const Diagnostic*>& errors, const Context& context) {
    const auto first = std::ranges::find_if(
        errors, [&](const Diagnostic* error) { return is_host_function(*error, context); });
    if (first == errors.end()) return 0;
    const Diagnostic* const kept = *first;
    return std::erase_if(
        errors, [&](const Diagnostic* error) { return error != kept && is_foreign(*error, context); });
}

std::string without_line_end(std::string text) {
    while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
    return text;
}

}  // namespace

std::string explain_failure(const std::vector<Diagnostic>& diagnostics, const std::string& log,
                            const Source& source, std::span<const std::string> library_paths) {
    const Context context{source, canonical_name(source.text), library_paths};
    std::vector<const Diagnostic*> errors;
    for (const Diagnostic& diagnostic : diagnostics) {
        if (diagnostic.is_error()) errors.push_back(&diagnostic);
    }
    if (errors.empty()) {  // the log has an unknown format
        return fmt::format("{} does not compile:\n{}", source.name,
                           without_line_end(readable_log(log, source)));
    }
    const std::size_t in_header = keep_first_of_host_header(errors, context);
    std::vector<Cause> causes = causes_of(errors);
    if (in_header > 0) {
        const auto first = std::ranges::find_if(
            causes, [&](const Cause& cause) { return is_host_function(*cause.error, context); });
        first->consequences += in_header;
    }
    std::string text;
    std::vector<std::string> helped;
    for (const Cause& cause : std::span(causes).first(std::min(causes.size(), most_shown))) {
        text += render(*cause.error, context);
        if (cause.consequences > 0) {
            text += fmt::format("  ... and {} more {} that {} from it\n", cause.consequences,
                                cause.consequences == 1 ? "error" : "errors",
                                cause.consequences == 1 ? "follows" : "follow");
        }
        const std::string help = with_options(help_for(*cause.error, source));
        if (help.empty() || std::ranges::find(helped, help) != helped.end()) continue;
        text += fmt::format("help: {}\n", help);
        helped.push_back(help);
    }
    if (causes.size() > most_shown) {
        const std::size_t more = causes.size() - most_shown;
        text += fmt::format("... and {} more {}; .log has them all.\n", more, more == 1 ? "error" : "errors");
    }
    return fmt::format("{} does not compile:\n{}", source.name, without_line_end(text));
}

}  // namespace bascule
