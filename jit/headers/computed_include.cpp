#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <bascule/jit/headers/computed_include.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

/// A token. `hidden`: the macros whose expansion it comes from. They do not expand again.
struct Part {
    std::string text;
    bool is_word = false;
    bool spaced = false;  ///< blanks or a comment precede it
    std::set<std::string> hidden{};

    bool is(std::string_view expected) const { return text == expected; }
};
using Parts = std::vector<Part>;

struct Macro {
    bool is_function = false;
    std::vector<std::string> parameters{};
    Parts body{};
};

/// The tokens of a text; nothing if compilers may disagree on them.
std::optional<Parts> parts_of(std::string_view text) {
    Parts parts;
    bool spaced = false;
    for (std::size_t at = 0; at < text.size();) {
        const Piece piece = piece_at(text, at);
        const std::string_view spelled = text.substr(at, piece.end - at);
        at = piece.end;
        const bool is_blank = piece.kind == Piece::Kind::blank || piece.kind == Piece::Kind::comment;
        // A letter beyond ASCII or a dollar sign may be a part of a word, and 1e+x may be one number.
        const bool is_odd_mark =
            piece.kind == Piece::Kind::mark &&
            (spelled == "$" || spelled == "\\" || static_cast<unsigned char>(spelled[0]) >= 0x80);
        const bool may_go_on = piece.kind == Piece::Kind::number &&
                               std::string_view("eEpP").find(spelled.back()) != std::string_view::npos;
        if (!piece.closed || piece.raw || is_odd_mark || may_go_on) return std::nullopt;
        if (is_blank) {
            spaced = true;
        } else if (spelled == "#" && !spaced && !parts.empty() && parts.back().is("#")) {
            parts.back().text = "##";
        } else {
            parts.push_back(
                {std::string(spelled), piece.kind == Piece::Kind::word, std::exchange(spaced, false)});
        }
    }
    return parts;
}

/// Parses what follows a macro's name. Returns nothing for a macro with `...`.
std::optional<Macro> parse_macro(std::string_view rest) {
    Macro macro{.is_function = rest.starts_with('(')};
    std::optional<Parts> parts = parts_of(rest);
    if (!parts) return std::nullopt;
    auto next = parts->begin();
    if (macro.is_function) {
        for (++next; next != parts->end() && !next->is(")"); ++next) {
            if (next->is_word) macro.parameters.push_back(next->text);
            if (!next->is_word && !next->is(",")) return std::nullopt;
        }
        if (next == parts->end()) return std::nullopt;
        ++next;
    }
    macro.body.assign(std::make_move_iterator(next), std::make_move_iterator(parts->end()));
    return macro;
}

/// Whether NVRTC may predefine this word. All words that NVRTC 12.0 and 13.5 predefine have these forms.
bool may_be_predefined(std::string_view word) {
    // Only Thrust and CUTLASS define these words.
    if (fits_one("__THRUST_* CUDA_STD_HEADER", word)) return false;
    return fits_one("_* CU* NV_* NULL assert linux unix va_*", word) ||
           (word.size() > 4 && word.starts_with("cuda"));
}

/// Expands a computed #include. If macros in it have several definitions, expands it once for each combination of
/// these.
class Expansions {
  public:
    explicit Expansions(const MacroDefinitions& definitions) : definitions_(definitions) {}

    std::optional<std::vector<Include>> headers(const ComputedInclude& include) {
        const std::optional<Parts> parts = parts_of(include.tokens);
        if (!parts) return std::nullopt;
        std::vector<Include> found;
        do {
            std::optional<Include> named = header(expand(*parts));
            if (!understood_) return std::nullopt;
            if (!named) continue;
            named->next = include.next;
            if (std::ranges::find(found, *named) == found.end()) found.push_back(*std::move(named));
        } while (choose_next());
        return found;
    }

  private:
    struct Choice {
        std::string_view name;
        std::size_t number = 0;  ///< of the definition, counted from 1; 0: the macro is not defined
        std::size_t most = 0;
    };

    Parts fail() {
        understood_ = false;
        return {};
    }

    /// Selects the next combination. Returns false after the last one.
    bool choose_next() {
        while (!choices_.empty() && choices_.back().number == choices_.back().most) choices_.pop_back();
        if (choices_.empty()) return false;
        ++choices_.back().number;
        return true;
    }

    /// The chosen definition; null for a word that does not expand.
    const Macro* macro_named(const std::string& word) {
        const auto defined = definitions_.find(word);
        if (may_be_predefined(word)) return fail(), nullptr;
        if (defined == definitions_.end()) return nullptr;
        auto choice = std::ranges::find(choices_, word, &Choice::name);
        if (choice == choices_.end())
            choice = choices_.insert(choice, {defined->first, 0, defined->second.size()});
        if (choice->number == 0) return nullptr;
        const std::string_view rest = defined->second[choice->number - 1];
        const auto [parsed, is_new] = macros_.try_emplace({defined->first, choice->number});
        if (is_new) parsed->second = parse_macro(rest);
        if (!parsed->second) return fail(), nullptr;
        return &*parsed->second;
    }

    /// Expands tokens by the rules of the C standard, with the chosen definitions.
    Parts expand(const Parts& parts) {
        constexpr int most_steps = 20'000;  // for all expansions together
        std::deque<Part> rest(parts.begin(), parts.end());
        Parts expanded;
        while (understood_ && !rest.empty()) {
            if (++steps_ > most_steps) return fail();
            Part part = std::move(rest.front());
            rest.pop_front();
            const bool may_expand = part.is_word && !part.hidden.contains(part.text);
            const Macro* macro = may_expand ? macro_named(part.text) : nullptr;
            const bool is_call =
                macro != nullptr && macro->is_function && !rest.empty() && rest.front().is("(");
            if (macro == nullptr || (macro->is_function && !is_call)) {
                expanded.push_back(std::move(part));
                continue;
            }
            const std::vector<Parts> arguments = is_call ? take_arguments(rest) : std::vector<Parts>{};
            if (macro->parameters.size() != arguments.size() &&
                !(macro->parameters.empty() && arguments.size() == 1 && arguments[0].empty()))
                return fail();
            Parts result = substitute(*macro, arguments);
            for (Part& each : result) {
                each.hidden.insert(part.hidden.begin(), part.hidden.end());
                each.hidden.insert(part.text);
            }
            if (!result.empty()) result.front().spaced = part.spaced;
            rest.insert(rest.begin(), std::make_move_iterator(result.begin()),
                        std::make_move_iterator(result.end()));
        }
        return expanded;
    }

    /// Removes `(a, b)` from the front and returns the arguments.
    std::vector<Parts> take_arguments(std::deque<Part>& rest) {
        std::vector<Parts> arguments(1);
        int depth = 0;
        do {
            if (rest.empty()) return fail(), arguments;
            Part part = std::move(rest.front());
            rest.pop_front();
            if (part.is(")")) --depth;
            if (part.is(",") && depth == 1) {
                arguments.emplace_back();
            } else if (depth > 0) {
                arguments.back().push_back(part);
            }
            if (part.is("(")) ++depth;
        } while (depth > 0);
        return arguments;
    }

    Parts substitute(const Macro& macro, const std::vector<Parts>& arguments) {
        Parts result;
        bool pastes = false;  // a ## precedes
        for (std::size_t at = 0; at < macro.body.size() && understood_; ++at) {
            const Part& part = macro.body[at];
            if (part.is("##")) {
                pastes = true;
                continue;
            }
            const bool pasted_next = at + 1 < macro.body.size() && macro.body[at + 1].is("##");
            Parts replaced = {part};
            if (part.is("#") && macro.is_function) {
                if (++at == macro.body.size()) return fail();
                const Parts* argument = argument_of(macro.body[at], macro, arguments);
                if (argument == nullptr || pastes) return fail();
                replaced = {{quoted(*argument), false, part.spaced}};
            } else if (const Parts* argument = argument_of(part, macro, arguments)) {
                replaced = pastes || pasted_next ? *argument : expand(*argument);
                if (!replaced.empty()) replaced.front().spaced = part.spaced;
            }
            if (std::exchange(pastes, false)) {
                if (result.empty() || replaced.empty()) return fail();
                result.back().text += replaced.front().text;
                const std::optional<Parts> pasted = parts_of(result.back().text);
                if (!pasted || pasted->size() != 1) return fail();
                result.back().is_word = pasted->front().is_word;
                replaced.erase(replaced.begin());
            } else if (pasted_next && replaced.empty()) {
                return fail();
            }
            result.insert(result.end(), replaced.begin(), replaced.end());
        }
        return pastes ? fail() : result;
    }

    static const Parts* argument_of(const Part& part, const Macro& macro,
                                    const std::vector<Parts>& arguments) {
        const auto parameter = std::ranges::find(macro.parameters, part.text);
        if (!part.is_word || parameter == macro.parameters.end()) return nullptr;
        return &arguments[static_cast<std::size_t>(parameter - macro.parameters.begin())];
    }

    /// Applies # to an argument.
    std::string quoted(const Parts& argument) { return '"' + joined(argument) + '"'; }

    /// Joins tokens to one text. Fails if there are blanks between them, because compilers differ in which they keep.
    std::string joined(std::span<const Part> parts) {
        std::string text;
        for (const Part& part : parts) {
            const bool is_odd = part.text.find_first_of("\"'\\") != part.text.npos;
            if (is_odd || (part.spaced && !text.empty())) fail();
            text += part.text;
        }
        return text;
    }

    /// The header that the tokens name; nothing if the directive would be a compile error.
    std::optional<Include> header(std::span<const Part> parts) {
        if (!understood_ || parts.empty()) return std::nullopt;
        const std::string& first = parts.front().text;
        const bool quoted = first.starts_with('"');
        if (!quoted && first != "<") return parts.front().is_word ? std::nullopt : (fail(), std::nullopt);
        const std::string name = quoted ? first : joined(parts);
        // Compilers may differ on an empty name, tokens after the name, a second > and escapes.
        const bool is_odd = name.size() < 3 || name.find('\\') != name.npos || (quoted && parts.size() > 1) ||
                            (!quoted && name.find('>') != name.size() - 1);
        if (is_odd) fail();
        return Include{name.substr(1, name.size() - 2), quoted, false, false};
    }

    const MacroDefinitions& definitions_;
    std::vector<Choice> choices_;
    std::map<std::pair<std::string_view, std::size_t>, std::optional<Macro>> macros_;
    int steps_ = 0;
    bool understood_ = true;
};

}  // namespace

std::optional<std::vector<Include>> headers_named_by(const ComputedInclude& include,
                                                     const MacroDefinitions& definitions) {
    return Expansions(definitions).headers(include);
}

}  // namespace bascule
