#include <algorithm>
#include <optional>

#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

bool is_word(char c) { return continues_word(c) || c == '$'; }

/// Finds where comments end, reading a text once however often it is asked in ascending order.
class CommentEnds {
  public:
    /// Behind the first `*/` from there on, or the text's end.
    std::size_t after(std::string_view text, std::size_t from) {
        if (!known_ || (close_ != text.npos && close_ < from)) {
            close_ = text.find("*/", from);
            known_ = true;
        }
        return close_ == text.npos ? text.size() : close_ + 2;
    }

  private:
    bool known_ = false;
    std::size_t close_ = 0;
};

/// Walks over one directive as the preprocessor does: comments are blanks.
class Walk {
  public:
    Walk(std::string_view text, std::size_t at, CommentEnds& ends) : text_(text), at_(at), ends_(ends) {}

    void skip_blanks() {
        while (true) {
            at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
            if (text_.substr(at_, 2) != "/*") return;
            at_ = ends_.after(text_, at_ + 2);
        }
    }
    std::string_view word() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void step() { ++at_; }

    /// What precedes `stop` on this line.
    std::optional<std::string> until(char stop) const {
        const std::string_view rest = text_.substr(at_, longest);
        const std::size_t end = rest.find_first_of(std::string{stop, '\n'});
        if (end == rest.npos || rest[end] != stop) return std::nullopt;
        return std::string(rest.substr(0, end));
    }

  private:
    static constexpr std::size_t longest = 4096;  // no path is longer

    std::string_view text_;
    std::size_t at_;
    CommentEnds& ends_;
};

/// Where a text's comments and literals are: an #include without a literal name is none in there.
class Quotations {
  public:
    explicit Quotations(std::string_view text) : text_(text) {}

    /// Whether `place` is in a comment or a literal. Asked in ascending order.
    bool contain(std::size_t place) {
        while (piece_.end <= place) piece_ = piece_at(text_, piece_.end);
        return piece_.quotes();
    }

  private:
    std::string_view text_;
    Piece piece_;
};

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text), quotations_(text) {}

    IncludeDirectives read() && {
        for (std::size_t at = next_sign(0); at < text_.size(); at = next_sign(at + 1)) directive_at(at);
        read_probes();
        for (const char* word : {"__DATE__", "__TIME__", "__TIMESTAMP__"}) {
            if (text_.find(word) != text_.npos) found_.has_time = true;
        }
        return std::move(found_);
    }

  private:
    /// The next '#', or its other spelling "%:".
    std::size_t next_sign(std::size_t from) {
        // Each spelling's next place is found once, so that a text is read once.
        if (digraph_ != text_.npos && digraph_ < from) digraph_ = text_.find("%:", from);
        if (hash_ != text_.npos && hash_ < from) hash_ = text_.find('#', from);
        return std::min(hash_, digraph_);
    }

    void directive_at(std::size_t sign) {
        Walk walk(text_, sign + (text_[sign] == '%' ? 2 : 1), comment_ends_);
        walk.skip_blanks();
        const std::string_view word = walk.word();
        if (word != "include" && word != "include_next" && word != "import" && word != "embed") return;
        walk.skip_blanks();
        const char quote = walk.peek();
        if (word != "embed" && (quote == '"' || quote == '<')) {
            walk.step();
            if (auto name = walk.until(quote == '"' ? '"' : '>')) {
                found_.includes.push_back({std::move(*name), quote == '"', word == "include_next", false});
                return;
            }
        }
        if (may_begin_directive(sign) && !quotations_.contain(sign)) found_.computed = true;
    }

    /// Nothing but blanks precedes it on its line, or the end of a comment.
    bool may_begin_directive(std::size_t sign) const {
        std::size_t before = sign;
        while (before > 0 && blanks.find(text_[before - 1]) != blanks.npos) --before;
        return before == 0 || text_[before - 1] == '\n' ||
               (before >= 2 && text_.substr(before - 2, 2) == "*/");
    }

    /// `__has_include(<x>)`, and the same through a macro whose name says so: CCCL probes by
    /// _CCCL_HAS_INCLUDE.
    void read_probes() {
        for (const std::string_view ending :
             {"has_include", "HAS_INCLUDE", "has_include_next", "has_embed"}) {
            Quotations quotations(text_);
            CommentEnds ends;
            for (std::size_t at = text_.find(ending); at != text_.npos; at = text_.find(ending, at + 1)) {
                read_probe(at, ending, quotations, ends);
            }
        }
    }

    void read_probe(std::size_t at, std::string_view ending, Quotations& quotations, CommentEnds& ends) {
        if (found_.computed) return;  // no more is asked of such a text
        const std::size_t end = at + ending.size();
        if (end < text_.size() && is_word(text_[end])) return;  // another word
        Walk walk(text_, end, ends);
        walk.skip_blanks();
        if (walk.peek() != '(') return;  // #ifdef __has_include
        walk.step();
        walk.skip_blanks();
        const char quote = walk.peek();
        if (ending != "has_embed" && (quote == '"' || quote == '<')) {
            walk.step();
            if (auto name = walk.until(quote == '"' ? '"' : '>')) {
                found_.includes.push_back(
                    {std::move(*name), quote == '"', ending == "has_include_next", true});
                return;
            }
        }
        if (!defines_probe(at) && !quotations.contain(at)) found_.computed = true;
    }

    /// Whether this is in a line like `#define SOME_HAS_INCLUDE(X) __has_include(X)`.
    bool defines_probe(std::size_t at) const {
        // Such a line is short; a long one is not searched for each probe.
        constexpr std::size_t farthest = 1024;
        const std::string_view before = text_.substr(0, at).substr(at - std::min(at, farthest));
        const std::size_t end_of_last = before.rfind('\n');
        if (end_of_last == before.npos && at > farthest) return false;
        const std::size_t line = end_of_last == before.npos ? 0 : at - before.size() + end_of_last + 1;
        std::string_view words = text_.substr(line, at - line + farthest);
        const auto skip = [&](std::string_view what) {
            words.remove_prefix(std::min(words.find_first_not_of(what), words.size()));
        };
        skip(blanks);
        if (!words.starts_with('#')) return false;
        skip("# \t\r\v\f");
        if (!words.starts_with("define")) return false;
        words.remove_prefix(6);
        skip(blanks);
        const auto stop = std::find_if_not(words.begin(), words.end(), is_word);
        const std::string_view name = words.substr(0, static_cast<std::size_t>(stop - words.begin()));
        return name.ends_with("has_include") || name.ends_with("HAS_INCLUDE");
    }

    std::string_view text_;
    Quotations quotations_;
    std::size_t digraph_ = text_.find("%:"), hash_ = text_.find('#');
    CommentEnds comment_ends_;
    IncludeDirectives found_;
};

/// The text with joined lines as one. Whether a blank behind the backslash matters differs among compilers.
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

}  // namespace

IncludeDirectives include_directives(std::string_view text) {
    if (text.find('\\') == text.npos) return Reader(text).read();
    const std::string strictly = unjoined(text, false);
    const std::string widely = unjoined(text, true);
    IncludeDirectives found = Reader(strictly).read();
    if (widely == strictly) return found;
    IncludeDirectives more = Reader(widely).read();
    found.includes.insert(found.includes.end(), more.includes.begin(), more.includes.end());
    found.computed = found.computed || more.computed;
    found.has_time = found.has_time || more.has_time;
    return found;
}

}  // namespace bascule
