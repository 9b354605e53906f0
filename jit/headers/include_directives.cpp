#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <span>

#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

constexpr std::size_t longest_path = 4096;
constexpr std::size_t most_walks = 8;
constexpr std::string_view blanks = " \t\r\v\f";

/// Words that make the result of a compile depend on more than the included texts. _CCCL_HAS_INCLUDE is CCCL's
/// macro for __has_include.
constexpr std::array<std::string_view, 7> decisive_words = {
    "__has_include", "__has_include_next", "__has_embed",      "__DATE__",
    "__TIME__",      "__TIMESTAMP__",      "_CCCL_HAS_INCLUDE"};

bool tells_time(std::string_view word) {
    return word == "__DATE__" || word == "__TIME__" || word == "__TIMESTAMP__";
}
/// Whether the word is a probe of the file system, or may be a macro that stands for one.
bool is_probe(std::string_view word) {
    constexpr std::size_t shortest = 9;  // has_embed
    if (word.size() < shortest || (word.find("as_") == word.npos && word.find("AS_") == word.npos))
        return false;
    const auto contains = [&](std::string_view part) { return word.find(part) != word.npos; };
    return contains("has_include") || contains("HAS_INCLUDE") || contains("has_embed") ||
           contains("HAS_EMBED");
}
bool is_builtin_probe(std::string_view word) {
    return word == "__has_include" || word == "__has_include_next";
}

struct Span {
    std::size_t begin = 0, end = 0;
};

/// The comments and literals of a text. Nothing if compilers may disagree on them: about an unclosed quotation mark
/// in text that an #if removes, the prefix of a raw string, or names beyond ASCII.
std::optional<std::vector<Span>> quotations(std::string_view text, bool lines_were_joined) {
    std::vector<Span> found;
    for (std::size_t at = 0; at < text.size();) {
        const Piece piece = piece_at(text, at);
        const char first = text[at];
        if (!piece.closed) return std::nullopt;
        // Raw strings keep their line splices, and an R directly after a literal begins no raw string.
        if (piece.raw && (lines_were_joined || (at > 0 && text[at - 1] == '"'))) return std::nullopt;
        if (piece.kind == Piece::Kind::mark && (first == '\\' || is_word(first))) return std::nullopt;
        if (piece.quotes()) found.push_back({at, piece.end});
        at = piece.end;
    }
    return found;
}

/// Tells whether places are in one of the spans. The places must be asked for in ascending order.
class Inside {
  public:
    explicit Inside(std::span<const Span> spans) : spans_(spans) {}
    bool contains(std::size_t place) {
        while (!spans_.empty() && spans_.front().end <= place) spans_ = spans_.subspan(1);
        return !spans_.empty() && spans_.front().begin <= place;
    }

  private:
    std::span<const Span> spans_;
};

/// The ends of block comments. The text is searched once, at the first call.
class CommentEnds {
  public:
    explicit CommentEnds(std::string_view text) : text_(text) {}

    /// The place after the first `*/` at or after `from`; the text's end if there is none.
    std::size_t after(std::size_t from) {
        if (!searched_) {
            for (std::size_t at = text_.find("*/"); at != text_.npos; at = text_.find("*/", at + 1)) {
                places_.push_back(at);
            }
            searched_ = true;
        }
        const auto found = std::ranges::lower_bound(places_, from);
        return found == places_.end() ? text_.size() : *found + 2;
    }

  private:
    std::string_view text_;
    bool searched_ = false;
    std::vector<std::size_t> places_;
};

/// Walks over one directive. Comments count as blanks, as in the preprocessor.
class Walk {
  public:
    Walk(std::string_view text, std::size_t at, CommentEnds& ends) : text_(text), at_(at), ends_(&ends) {}

    void skip_blanks() {
        while (true) {
            at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
            if (text_.substr(at_, 2) != "/*") return;
            at_ = ends_->after(at_ + 2);
        }
    }
    std::string_view word() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    bool at_end() const { return at_ >= text_.size() || text_[at_] == '\n'; }
    char peek() const { return at_end() ? '\n' : text_[at_]; }
    std::size_t place() const { return at_; }
    void step() { ++at_; }
    bool accept(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    /// Skips one token, which must not begin a comment that ends on another line.
    void skip_piece() { at_ = piece_at(text_, at_).end; }

    /// Reads "name" or <name>. Returns nothing if compilers may disagree on the name.
    std::optional<Include> header() {
        const char open = peek();
        if (open != '"' && open != '<') return std::nullopt;
        const std::string_view rest = text_.substr(at_ + 1, longest_path);
        const std::size_t end = rest.find_first_of(open == '"' ? "\"\n" : ">\n");
        if (end == rest.npos || rest[end] == '\n') return std::nullopt;
        const std::string_view name = rest.substr(0, end);
        const bool odd = name.empty() || name.find_first_of("'\"\\") != name.npos ||
                         name.find("//") != name.npos || name.find("/*") != name.npos;
        if (odd) return std::nullopt;
        at_ += end + 2;
        return Include{std::string(name), open == '"', false, false};
    }

  private:
    std::string_view text_;
    std::size_t at_;
    CommentEnds* ends_;
};

/// Whether only blanks or the end of a comment precede the sign on its line.
bool begins_line(std::string_view text, std::size_t sign) {
    std::size_t before = sign;
    while (before > 0 && blanks.find(text[before - 1]) != blanks.npos) --before;
    return before == 0 || text[before - 1] == '\n' || (before >= 2 && text.substr(before - 2, 2) == "*/");
}

/// Whether a backslash joins the line that ends there to the next one.
bool is_spliced(std::string_view text, std::size_t end) {
    while (end > 0 && blanks.find(text[end - 1]) != blanks.npos) --end;
    return end > 0 && text[end - 1] == '\\';
}

/// Reads everything that may be a directive, except in `hidden`, which is sorted.
class Reader {
  public:
    Reader(std::string_view text, std::span<const Span> hidden) : text_(text), hidden_(hidden) {}

    IncludeDirectives read() && {
        Inside hidden(hidden_);
        for (std::size_t at = next_sign(0); at < text_.size(); at = next_sign(at + 1)) {
            if (hidden.contains(at)) continue;
            const std::size_t length = text_[at] == '%' ? 2 : 1;
            const bool pastes = text_.substr(at + length, length) == text_.substr(at, length);
            if (pastes) pastes_.try_emplace(at, false);
            if (begins_line(text_, at)) directive_at(at + length);
        }
        const auto is_harmless = [](const auto& paste) { return paste.second; };
        found_.pastes = !std::ranges::all_of(pastes_, is_harmless);
        for (std::size_t i = 0; i < definitions_.size(); ++i) {
            const auto [begin, end] = definitions_[i];
            found_.definitions[i].pastes |=
                !std::all_of(pastes_.lower_bound(begin), pastes_.lower_bound(end), is_harmless);
        }
        read_words();
        return std::move(found_);
    }

  private:
    /// The position of the next '#', or of its other spelling "%:", at or after `from`.
    std::size_t next_sign(std::size_t from) {
        // The next place of each spelling is remembered, so that a text is searched once.
        if (digraph_ != text_.npos && digraph_ < from) digraph_ = text_.find("%:", from);
        if (hash_ != text_.npos && hash_ < from) hash_ = text_.find('#', from);
        return std::min(hash_, digraph_);
    }

    void directive_at(std::size_t behind_sign) {
        // Directives overlap if several follow comments on one line. Texts with so many that each piece would be read
        // again and again are doubtful.
        if (walked_ > most_walks * text_.size()) {
            found_.doubtful = true;
            return;
        }
        Walk walk(text_, behind_sign, comment_ends_);
        walk.skip_blanks();
        const std::string_view word = walk.word();
        walk.skip_blanks();
        if (word == "include" || word == "include_next" || word == "import") {
            std::optional<Include> include = walk.header();
            const bool next = word == "include_next";
            if (!include) {
                // Tokens longer than a path become an unclosed quotation mark, which makes the program doubtful.
                const std::string_view tokens = rest_of_line(walk);
                return found_.computed.push_back(
                    {tokens.size() > longest_path ? "\"" : std::string(tokens), next});
            }
            include->next = next;
            found_.includes.push_back(std::move(*include));
        } else if (word == "embed") {
            found_.doubtful = true;
        } else if (word == "if" || word == "elif") {
            read_condition(walk);
        } else if (word.starts_with("ifn") || word.starts_with("ifd") || word.starts_with("elif")) {
            plain_.push_back(walk.place());
        } else if (word == "define" || word == "undef") {
            if (word == "define") keep_definition(walk);
            read_definition(walk);
        }
    }

    /// The rest of the directive, cut off when all rests together exceed twice the text's length. This bounds the time
    /// for texts whose directives overlap.
    std::string_view rest_of_line(Walk walk) {
        const std::size_t begin = walk.place();
        const std::size_t most = begin + 2 * text_.size() - std::min(kept_, 2 * text_.size());
        std::size_t end = std::min(text_.find('\n', begin), text_.size());
        if (text_.substr(begin, end - begin).find("/*") != text_.npos) {
            for (walk.skip_blanks(); !walk.at_end() && walk.place() <= most; walk.skip_blanks())
                walk.skip_piece();
            end = walk.place();
        }
        kept_ += end - begin;
        return text_.substr(begin, end - begin);
    }

    void keep_definition(Walk walk) {
        constexpr const char* unreadable = "(\"";
        std::string name(walk.word());
        const std::size_t begin = walk.place();
        const std::string_view rest = rest_of_line(walk);
        definitions_.push_back({begin, begin + rest.size()});
        const bool is_cut = kept_ > 2 * text_.size();
        found_.definitions.push_back({std::move(name), is_cut ? unreadable : std::string(rest), is_cut});
    }

    /// Reads up to the end of the line. For probes that are not understood here, read_words sets `doubtful`.
    void read_condition(Walk walk) {
        std::vector<bool> calls;  // for each open parenthesis: whether it begins a macro's arguments
        bool behind_name = false, behind_defined = false;
        const std::size_t begin = walk.place();
        for (walk.skip_blanks(); !walk.at_end(); walk.skip_blanks()) {
            const std::size_t place = walk.place();
            if (const std::string_view word = walk.word(); !word.empty()) {
                const bool in_call = std::ranges::find(calls, true) != calls.end();
                if (is_probe(word) && (behind_defined || read_probe(walk, word, in_call)))
                    plain_.push_back(place);
                behind_defined = word == "defined";
                behind_name = !behind_defined;
            } else if (walk.accept('(')) {
                calls.push_back(behind_name);
                behind_name = false;
            } else {
                behind_name = walk.peek() == ')';
                behind_defined = false;
                if (behind_name && !calls.empty()) calls.pop_back();
                walk.skip_piece();
            }
        }
        walked_ += walk.place() - begin;
    }

    /// Reads `("x")` or `(<x>)` after the word. In a macro's arguments the parts of <x> may be macros.
    bool read_probe(Walk& walk, std::string_view word, bool in_call) {
        Walk ahead = walk;
        ahead.skip_blanks();
        if (!ahead.accept('(')) return false;
        ahead.skip_blanks();
        std::optional<Include> include = ahead.header();
        ahead.skip_blanks();
        if (!include || !ahead.accept(')')) return false;
        if (!is_builtin_probe(word) || (in_call && !include->quoted)) found_.wraps_probe = true;
        include->next = word.ends_with("_next");
        include->is_probe = true;
        found_.includes.push_back(std::move(*include));
        walk = ahead;
        return true;
    }

    /// Reads what follows `#define`. Only a probe in the macro's body sets `wraps_probe`, as in `#define
    /// SOME_HAS_INCLUDE(x) __has_include(x)`; `#define __has_include(x) 0` after an #ifndef does no harm.
    void read_definition(Walk walk) {
        const std::size_t place = walk.place();
        const std::string_view name = walk.word();
        read_pastes(walk);
        if (!is_probe(name)) return;
        plain_.push_back(place);
        for (walk.skip_blanks(); !walk.at_end(); walk.skip_blanks()) {
            const std::size_t at = walk.place();
            const std::string_view word = walk.word();
            if (is_probe(word)) {
                plain_.push_back(at);
                found_.wraps_probe = true;
            }
            if (word.empty()) walk.skip_piece();
        }
        walked_ += walk.place() - place;
    }

    /// Reads what follows a macro's name. A `##` is harmless if it joins a word that is not a parameter and that no
    /// decisive word contains. If it may be in several definitions, because some are in comments, it must be harmless
    /// in all of them.
    void read_pastes(Walk walk) {
        const std::size_t begin = walk.place();
        const std::string_view line = text_.substr(begin, text_.find('\n', begin) - begin);
        walked_ += line.size();
        if (line.find("##") == line.npos && line.find("/*") == line.npos) return;
        std::set<std::string_view> arguments = {"__VA_ARGS__", "__VA_OPT__"};
        if (walk.accept('(')) {
            for (walk.skip_blanks(); !walk.at_end() && walk.peek() != ')'; walk.skip_blanks()) {
                if (!arguments.insert(walk.word()).first->empty()) continue;
                walk.skip_piece();
            }
        }
        constexpr std::size_t none = std::string_view::npos;
        std::size_t paste = none;  // the `##` before this token
        bool harmless = false;     // because of the token before it
        bool foreign = false;
        for (walk.skip_blanks(); !walk.at_end(); walk.skip_blanks()) {
            const std::size_t place = walk.place();
            const std::string_view word = walk.word();
            const bool is_paste = word.empty() && text_.substr(place, 2) == "##";
            const bool behind_foreign = foreign;
            // `, ## __VA_ARGS__` joins no words.
            foreign = word.empty() ? walk.peek() == ','
                                   : !arguments.contains(word) && !is_fragment(word) && !is_probe(word) &&
                                         !tells_time(word);
            if (paste != none) {
                const auto judged = pastes_.try_emplace(paste, true).first;
                judged->second = judged->second && (harmless || foreign);
            }
            paste = is_paste ? place : none;
            harmless = behind_foreign;
            if (is_paste) walk.step();
            if (word.empty()) walk.skip_piece();
        }
        walked_ += walk.place() - begin;
    }

    /// Collects fragments, and sets `doubtful` for decisive words that no directive explains.
    void read_words() {
        std::ranges::sort(plain_);
        Inside hidden(hidden_);
        auto plain = plain_.begin();
        for (std::size_t at = 0; at < text_.size();) {
            const std::size_t begin = at;
            while (at < text_.size() && is_word(text_[at])) ++at;
            if (at == begin) {
                ++at;
                continue;
            }
            const std::string_view word = text_.substr(begin, at - begin);
            const bool fragment = is_fragment(word);
            const bool decisive = is_probe(word) || tells_time(word);
            if ((!fragment && !decisive) || hidden.contains(begin)) continue;
            if (fragment) found_.fragments.emplace(word);
            while (plain != plain_.end() && *plain < begin) ++plain;
            if (decisive && (plain == plain_.end() || *plain != begin)) found_.doubtful = true;
        }
    }

    std::string_view text_;
    std::span<const Span> hidden_;
    std::size_t digraph_ = text_.find("%:"), hash_ = text_.find('#');
    CommentEnds comment_ends_{text_};
    std::vector<std::size_t> plain_;      // places of decisive words that a directive explains
    std::map<std::size_t, bool> pastes_;  // each `##`, and whether it is harmless
    std::vector<Span> definitions_;       // the places of found_.definitions[i].rest
    std::size_t kept_ = 0;                // the length of all rests of directives
    std::size_t walked_ = 0;              // the length of all parts of directives that were read
    IncludeDirectives found_;
};

/// Reads a text without line splices. First reads comments and literals as if they were code, which is fast and
/// safe wherever they end. Only if that leaves a doubt, reads the text again without them.
IncludeDirectives read_joined(std::string_view text, bool lines_were_joined) {
    IncludeDirectives found = Reader(text, {}).read();
    const bool pastes_probe = found.pastes && can_paste_probe(found.fragments);
    if (found.computed.empty() && !found.doubtful && !found.wraps_probe && !pastes_probe) return found;
    const std::optional<std::vector<Span>> hidden = quotations(text, lines_were_joined);
    return hidden ? Reader(text, *hidden).read() : found;
}

IncludeDirectives read_splices(std::string_view text) {
    const std::string strictly = unjoined(text, false);
    const std::string widely = unjoined(text, true);
    IncludeDirectives found = read_joined(strictly, strictly.size() != text.size());
    if (widely == strictly) return found;
    IncludeDirectives more = read_joined(widely, true);
    found.includes.insert(found.includes.end(), more.includes.begin(), more.includes.end());
    found.computed.insert(found.computed.end(), more.computed.begin(), more.computed.end());
    found.wraps_probe |= more.wraps_probe;
    found.doubtful |= more.doubtful;
    found.pastes |= more.pastes;
    found.fragments.merge(more.fragments);
    found.definitions.insert(found.definitions.end(), more.definitions.begin(), more.definitions.end());
    return found;
}

using Rename = std::function<std::optional<std::string>(const std::string&)>;

/// Renames the headers in one directive, given without its `#` and without line splices.
std::string with_renamed_headers(const std::string& directive, const Rename& rename) {
    std::string renamed;
    std::size_t copied = 0;
    CommentEnds ends(directive);
    Walk walk(directive, 0, ends);
    const auto rename_next = [&] {
        walk.skip_blanks();
        const std::size_t begin = walk.place();
        const std::optional<Include> include = walk.header();
        if (!include || !include->quoted) return;
        const std::optional<std::string> name = rename(include->name);
        if (!name) return;
        renamed += directive.substr(copied, begin - copied) + '"' + *name + '"';
        copied = walk.place();
    };
    walk.skip_blanks();
    const std::string_view first = walk.word();
    if (first == "include" || first == "import") {
        rename_next();
    } else if (first == "if" || first == "elif") {
        for (walk.skip_blanks(); !walk.at_end(); walk.skip_blanks()) {
            const std::string_view word = walk.word();
            if (word == "__has_include") {
                walk.skip_blanks();
                if (walk.accept('(')) rename_next();
            } else if (word.empty()) {
                walk.skip_piece();
            }
        }
    }
    return renamed + directive.substr(copied);
}

/// Whether there is a NUL, or a carriage return without a newline: some compilers end a text or a line there.
bool has_odd_ends(std::string_view text) {
    for (std::size_t at = text.find('\r'); at != text.npos; at = text.find('\r', at + 1)) {
        if (text.substr(at, 2) != "\r\n") return true;
    }
    return text.find('\0') != text.npos;
}

/// Replaces the names in `#include "x"` and `__has_include("x")` for which `rename` returns one. Line numbers do not
/// change.
std::string with_renamed_includes(std::string_view text, const Rename& rename) {
    std::string renamed;
    std::size_t copied = 0;
    const std::vector<Span> quoted = quotations(text, false).value_or(std::vector<Span>{});
    Inside hidden(quoted);
    for (std::size_t at = text.find_first_of("#%"); at < text.size(); at = text.find_first_of("#%", at + 1)) {
        const std::size_t length = text[at] == '#' ? 1 : text.substr(at, 2) == "%:" ? 2 : 0;
        if (length == 0 || at < copied || hidden.contains(at) || !begins_line(text, at)) continue;
        // The directive ends with the line as the preprocessor sees it.
        std::size_t end = std::min(text.find('\n', at), text.size());
        while (end < text.size() && is_spliced(text, end))
            end = std::min(text.find('\n', end + 1), text.size());
        const std::string_view lines = text.substr(at + length, end - at - length);
        const std::string directive = unjoined(lines, true);
        const std::string changed = with_renamed_headers(directive, rename);
        if (changed == directive) continue;
        renamed += std::string(text.substr(copied, at + length - copied)) + changed;
        renamed.append(static_cast<std::size_t>(std::ranges::count(lines, '\n')), '\n');
        copied = end;
    }
    return renamed + std::string(text.substr(copied));
}

}  // namespace

std::string unjoined(std::string_view text, bool with_blanks) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t joint = std::min(text.find('\\', at), text.size());
        result += text.substr(at, joint - at);
        if (joint == text.size()) break;
        std::size_t end = joint + 1;
        while (end < text.size() &&
               (text[end] == '\r' || (with_blanks && blanks.find(text[end]) != blanks.npos))) {
            ++end;
        }
        const bool joined = end < text.size() && text[end] == '\n';
        if (!joined) result += '\\';
        at = joined ? end + 1 : joint + 1;
    }
    return result;
}

bool is_fragment(std::string_view word) {
    static const std::array<bool, 256> letters = [] {
        std::array<bool, 256> used{};
        for (const std::string_view whole : decisive_words) {
            for (const char c : whole) used[static_cast<unsigned char>(c)] = true;
        }
        return used;
    }();
    const bool may_be =
        std::ranges::all_of(word, [](char c) { return letters[static_cast<unsigned char>(c)]; });
    if (!may_be || std::ranges::find(decisive_words, word) != decisive_words.end()) return false;
    return std::ranges::any_of(decisive_words,
                               [&](std::string_view whole) { return whole.find(word) != whole.npos; });
}

bool is_word(char c) { return continues_word(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80; }

IncludeDirectives include_directives(std::string_view text) {
    text = without_byte_order_mark(text);
    IncludeDirectives found = text.find('\\') == text.npos ? read_joined(text, false) : read_splices(text);
    found.doubtful |= has_odd_ends(text);
    return found;
}

std::vector<std::pair<std::string, std::string>> memory_headers(const CompileOptions& options) {
    std::map<std::filesystem::path, std::string> names;
    for (const auto& [name, text] : options.headers)
        names.emplace(std::filesystem::path(name).lexically_normal(), name);
    std::vector<std::pair<std::string, std::string>> headers;
    for (const auto& [name, text] : options.headers) {
        const std::filesystem::path directory = std::filesystem::path(name).parent_path();
        const auto beside = [&](const std::string& included) -> std::optional<std::string> {
            const auto found = names.find((directory / included).lexically_normal());
            if (found == names.end() || found->second == included) return std::nullopt;
            return found->second;
        };
        headers.emplace_back(name, with_renamed_includes(text, beside));
    }
    return headers;
}

bool can_paste_probe(const std::set<std::string>& fragments) {
    return std::ranges::any_of(decisive_words, [&](std::string_view whole) -> bool {
        std::vector<bool> reached(whole.size() + 1);
        reached[0] = true;
        for (std::size_t at = 0; at < whole.size(); ++at) {
            if (!reached[at]) continue;
            for (const std::string& fragment : fragments) {
                if (whole.substr(at).starts_with(fragment)) reached[at + fragment.size()] = true;
            }
        }
        return reached.back();
    });
}

}  // namespace bascule
