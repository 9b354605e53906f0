#include <algorithm>

#include <bascule/jit/headers/pasted_words.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

/// The words of a text, including those in comments and literals.
std::vector<std::string_view> all_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        while (at < text.size() && is_word(text[at])) ++at;
        if (at > begin) words.push_back(text.substr(begin, at - begin));
        at = std::max(at, begin + 1);
    }
    return words;
}

/// The macro's definition after its parameters.
std::string_view body_of(const MacroDefinition& definition) {
    const std::string_view rest = definition.rest;
    if (!rest.starts_with('(')) return rest;
    return rest.substr(std::min(rest.find(')'), rest.size()));
}

/// Counts parentheses in comments and literals too. A wrong result only makes a program doubtful.
bool is_balanced(std::string_view text) {
    int depth = 0;
    for (const char c : text) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (depth < 0) return false;
    }
    return depth == 0;
}

/// Reads a text's calls of macros. A call in another call's arguments is a part of that, and so is `(b)` in `A(a)(b)`.
class Calls {
  public:
    Calls(std::string_view text, bool lines_were_joined, const PastingMacros& macros)
        : text_(text), lines_were_joined_(lines_were_joined), macros_(macros) {}

    std::optional<std::set<std::string>> read() {
        for (std::size_t at = 0; at < text_.size();) {
            const Piece piece = piece_at(text_, at);
            const std::string_view spelled = text_.substr(at, piece.end - at);
            if (is_odd(piece, at)) return std::nullopt;
            const bool is_blank = piece.kind == Piece::Kind::blank;
            const bool ends_line = is_blank && spelled.find('\n') != spelled.npos;
            if (piece.kind == Piece::Kind::mark && begins_directive(at)) {
                if (may_go_on()) return std::nullopt;
                end_call();
                at = behind_definition(at, piece.end);
                in_directive_ = at < text_.size() && text_[at] != '\n';
                continue;
            }
            if (in_directive_ && ends_line) {
                if (depth_ > 0) return std::nullopt;
                end_call();
            } else if (!is_blank && piece.kind != Piece::Kind::comment) {
                take(spelled, piece.kind);
            }
            at = piece.end;
        }
        if (may_go_on()) return std::nullopt;
        end_call();
        return std::move(found_);
    }

  private:
    /// Whether a pasting macro's arguments may continue after a directive or in another text.
    bool may_go_on() const { return depth_ > 0 || (ended_ && pastes_) || macros_.pastes(name_); }

    /// Whether compilers may disagree on this piece.
    bool is_odd(const Piece& piece, std::size_t at) const {
        const bool is_mark = piece.kind == Piece::Kind::mark;
        const bool is_odd_raw = piece.raw && (lines_were_joined_ || (at > 0 && text_[at - 1] == '"'));
        return !piece.closed || is_odd_raw || (is_mark && (text_[at] == '\\' || is_word(text_[at])));
    }

    void take(std::string_view spelled, Piece::Kind kind) {
        if (ended_ && spelled != "(") {
            const bool was_in_directive = in_directive_;
            end_call();
            in_directive_ = was_in_directive;
        }
        const bool calls = depth_ > 0 || ended_ || !name_.empty();
        if (spelled == "(" && calls) {
            if (depth_ == 0 && !ended_) pastes_ = macros_.pastes(name_);
            ended_ = false;
            ++depth_;
        } else if (spelled == ")" && depth_ > 0) {
            ended_ = --depth_ == 0;
        } else if (depth_ > 0 && kind == Piece::Kind::word) {
            pastes_ = pastes_ || macros_.pastes(spelled);
            if (is_fragment(spelled)) arguments_.emplace(spelled);
        }
        const bool is_macro = depth_ == 0 && kind == Piece::Kind::word && macros_.contains(spelled);
        name_ = is_macro ? spelled : std::string_view();
    }

    void end_call() {
        if (pastes_) found_.merge(arguments_);
        arguments_.clear();
        name_ = {};
        in_directive_ = pastes_ = ended_ = false;
    }

    bool begins_directive(std::size_t at) const {
        if (text_[at] != '#' && text_.substr(at, 2) != "%:") return false;
        const std::size_t before = at == 0 ? text_.npos : text_.find_last_not_of(" \t\r\v\f", at - 1);
        return before == text_.npos || text_[before] == '\n' || text_.substr(0, before + 1).ends_with("*/");
    }

    /// The place after a #define line; for other directives, after the sign.
    std::size_t behind_definition(std::size_t at, std::size_t end_of_sign) const {
        const std::size_t sign = text_[at] == '#' ? end_of_sign : at + 2;
        const std::size_t word = std::min(text_.find_first_not_of(" \t\r\v\f", sign), text_.size());
        if (text_.substr(word, 6) != "define") return sign;
        at = word;
        while (at < text_.size() && text_[at] != '\n') {
            const Piece piece = piece_at(text_, at);
            const bool ends_line = piece.kind == Piece::Kind::blank &&
                                   text_.substr(at, piece.end - at).find('\n') != std::string_view::npos;
            if (ends_line) break;
            at = piece.end;
        }
        return at;
    }

    std::string_view text_;
    bool lines_were_joined_;
    const PastingMacros& macros_;
    std::string_view name_;  // the macro name directly before this token; empty if there is none
    int depth_ = 0;          // of parentheses in the call
    bool ended_ = false;     // the parentheses are closed; another `(` continues the call
    bool pastes_ = false;    // the call names a pasting macro
    bool in_directive_ = false;
    std::set<std::string> arguments_;  // the fragments in the call's arguments
    std::set<std::string> found_;
};

}  // namespace

void PastingMacros::add(const MacroDefinition& definition) {
    definitions_.emplace(definition.name, &definition);
    if (definition.pastes) pasting_.insert(definition.name);
}

bool PastingMacros::close() {
    // For each macro name, the definitions whose bodies contain it.
    std::multimap<std::string_view, const MacroDefinition*> named_by;
    for (const auto& [name, definition] : definitions_) {
        for (const std::string_view word : all_words(body_of(*definition)))
            if (contains(word)) named_by.emplace(word, definition);
    }
    std::vector<std::string> waiting(pasting_.begin(), pasting_.end());
    while (!waiting.empty()) {
        const std::string name = std::move(waiting.back());
        waiting.pop_back();
        const auto [begin, end] = named_by.equal_range(name);
        for (auto each = begin; each != end; ++each) {
            const std::string& user = each->second->name;
            if (pasting_.insert(user).second) waiting.push_back(user);
        }
    }
    return std::ranges::all_of(pasting_, [&](const std::string& name) {
        const auto [begin, end] = definitions_.equal_range(name);
        return std::all_of(begin, end, [](const auto& each) { return is_balanced(each.second->rest); });
    });
}

std::optional<std::set<std::string>> pasted_fragments(std::string_view text, const PastingMacros& macros) {
    const std::string joined = unjoined(text, false);
    if (joined != unjoined(text, true)) return std::nullopt;
    return Calls(joined, joined.size() != text.size(), macros).read();
}

std::set<std::string> fragments_of(const MacroDefinition& definition) {
    const std::string_view body = body_of(definition);
    const std::vector<std::string_view> parameters =
        all_words(std::string_view(definition.rest).substr(0, definition.rest.size() - body.size()));
    std::set<std::string> fragments;
    for (const std::string_view word : all_words(body)) {
        const bool is_parameter = std::ranges::find(parameters, word) != parameters.end();
        if (!is_parameter && is_fragment(word)) fragments.emplace(word);
    }
    return fragments;
}

}  // namespace bascule
