#include "ptx/join.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "ptx/lexer.hpp"
#include "ptx/names.hpp"

namespace emulated::ptx {
namespace {

/// A declaration at module scope: tokens [first, last).
struct Statement {
    enum class Linkage : std::uint8_t { local, global, weak, external };
    std::string name;  // empty if it is not a declaration
    Linkage linkage = Linkage::local;
    bool defines = false, is_function = false;
    std::string_view results;  // for a function with results: "(.param .b32 r)"
    std::size_t first = 0, named = 0, last = 0;
};

class Statements {
  public:
    explicit Statements(const std::vector<Token>& tokens) : tokens_(tokens) {}

    std::vector<Statement> read() {
        std::vector<Statement> statements;
        while (tokens_[at_].kind != Token::Kind::end) statements.push_back(next());
        return statements;
    }

  private:
    bool is(std::string_view what) const { return tokens_[at_].is(what); }
    bool at_end() const { return tokens_[at_].kind == Token::Kind::end; }

    void skip_block(std::string_view open, std::string_view close) {
        int depth = 0;
        do {
            if (is(open)) ++depth;
            if (is(close)) --depth;
            ++at_;
        } while (depth > 0 && !at_end());
    }

    Statement next() {
        using Linkage = Statement::Linkage;
        static const std::map<std::string_view, Linkage> linkages = {{".visible", Linkage::global},
                                                                     {".weak", Linkage::weak},
                                                                     {".common", Linkage::weak},
                                                                     {".extern", Linkage::external}};
        Statement made;
        made.first = at_;
        for (auto found = linkages.find(tokens_[at_].text); found != linkages.end();
             found = linkages.find(tokens_[++at_].text))
            made.linkage = found->second;
        const bool is_function = is(".entry") || is(".func");
        const bool is_variable = is(".global") || is(".const") || is(".shared") || is(".local") || is(".tex");
        if (is_function) {
            function(made);
        } else if (is_variable) {
            variable(made);
        } else if (is(".section")) {
            while (!is("{") && !at_end()) ++at_;
            skip_block("{", "}");
        } else {
            ++at_;
        }
        made.last = at_;
        return made;
    }

    void function(Statement& made) {
        made.is_function = true;
        while (tokens_[at_].kind != Token::Kind::word && !at_end()) {
            if (is("(")) {
                const std::string_view open = tokens_[at_].text;
                skip_block("(", ")");
                const std::string_view close = tokens_[at_ - 1].text;
                made.results = {open.data(), close.data() + close.size()};
            } else {
                ++at_;
            }
        }
        made.name = tokens_[at_].text;
        made.named = at_;
        while (!is("{") && !is(";") && !at_end()) ++at_;
        made.defines = is("{");
        if (made.defines) {
            skip_block("{", "}");
        } else if (!at_end()) {
            ++at_;
        }
    }

    void variable(Statement& made) {
        made.defines = made.linkage != Statement::Linkage::external;
        for (; !is(";") && !at_end(); ++at_) {
            if (is("{")) skip_block("{", "}");
            if (is(";")) break;
            if (made.name.empty() && tokens_[at_].kind == Token::Kind::word) made.name = tokens_[at_].text;
        }
        if (!at_end()) ++at_;
    }

    const std::vector<Token>& tokens_;
    std::size_t at_ = 0;
};

/// The declarations of all texts, and the definitions of the texts processed so far.
struct Known {
    struct Definition {
        const Statement* statement;
        std::string_view text;  // its name
    };
    std::map<std::string, Definition> defined;  // of several weak definitions, the one that is kept
    /// The highest version and target of all headers, as written.
    double version = 0;
    int architecture = -1;
    std::string_view version_text, target_text;
    std::set<std::string> names;     // including local names
    std::uint64_t largest_file = 0;  // index of a .file
    /// The results with which texts declare functions. A linker compares only names: if the definition has no result, as
    /// with numba-cuda's void functions, the caller's result is undefined.
    std::map<std::string, std::string_view> declared_results;
};

/// Renames and copies one text, after the earlier ones.
class Joined {
  public:
    Joined(const Text& text, std::size_t number, Known& known)
        : text_(text), tokens_(tokenize(text.ptx)), number_(number), known_(known) {
        header();
        for (const Statement& each : statements_) {
            if (each.linkage == Statement::Linkage::external && !each.results.empty())
                known_.declared_results.try_emplace(each.name, each.results);
            if (each.defines && each.linkage != Statement::Linkage::local) define(each);
        }
    }

    std::string write() {
        std::set<std::string> own;
        std::vector<const Statement*> dropped;
        std::map<std::size_t, std::string_view> results;  // by token of the name
        for (const Statement& each : statements_) {
            if (each.name.empty()) continue;
            own.insert(each.name);
            if (each.linkage == Statement::Linkage::local && known_.names.contains(each.name))
                renamed_[each.name] = fmt::format("{}${}", each.name, number_);
            const bool is_shared = each.defines && each.linkage != Statement::Linkage::local;
            if (is_shared && known_.defined.at(each.name).statement != &each) dropped.push_back(&each);
            const auto declared = known_.declared_results.find(each.name);
            if (each.is_function && each.defines && each.results.empty() &&
                declared != known_.declared_results.end())
                results[each.named] = declared->second;
        }
        known_.names.merge(own);
        std::string out;
        std::size_t next_dropped = 0;
        const std::uint64_t offset = known_.largest_file;
        for (std::size_t i = body_; tokens_[i].kind != Token::Kind::end; ++i) {
            if (next_dropped < dropped.size() && dropped[next_dropped]->first == i) {
                copy_until(tokens_[i], out);
                i = dropped[next_dropped++]->last - 1;
                skip_past(tokens_[i]);
                continue;
            }
            const bool counts_files =
                tokens_[i].is(".file") || tokens_[i].is(".loc") || tokens_[i].is("inlined_at");
            if (counts_files && tokens_[i + 1].kind == Token::Kind::integer) {
                const std::uint64_t index = tokens_[i + 1].bits + offset;
                if (tokens_[i].is(".file")) known_.largest_file = std::max(known_.largest_file, index);
                replace(tokens_[i + 1], std::to_string(index), out);
            } else if (const auto missing = results.find(i); missing != results.end()) {
                replace(tokens_[i], fmt::format("{} {}", missing->second, tokens_[i].text), out);
            } else if (tokens_[i].kind == Token::Kind::word) {
                const auto renamed = renamed_.find(std::string(tokens_[i].text));
                if (renamed != renamed_.end()) replace(tokens_[i], renamed->second, out);
            }
        }
        out += text_.ptx.substr(copied_);
        return out + "\n";
    }

  private:
    // Reads .version MAJOR.MINOR .target NAME {, OPTION} .address_size 64, which each text has once.
    void header() {
        std::size_t at = 0;
        const auto number = [](std::string_view text, auto value) {
            const std::size_t first = std::min(text.find_first_of("0123456789"), text.size());
            std::from_chars(text.data() + first, text.data() + text.size(), value);
            return value;
        };
        if (tokens_[0].is(".version") && tokens_[1].kind != Token::Kind::end) {
            const double version = number(tokens_[1].text, 0.0);
            if (version > known_.version) {
                known_.version = version;
                known_.version_text = tokens_[1].text;
            }
            at = 2;
        }
        while (tokens_[at].is(".target") && tokens_[at + 1].kind != Token::Kind::end) {
            const int architecture = number(tokens_[at + 1].text, 0);
            const bool specific =  // sm_90a and not sm_90
                architecture == known_.architecture &&
                tokens_[at + 1].text.size() > known_.target_text.size();
            if (architecture > known_.architecture || specific) {
                known_.architecture = architecture;
                known_.target_text = tokens_[at + 1].text;
            }
            for (at += 2; tokens_[at].is(",") && tokens_[at + 1].kind != Token::Kind::end;) at += 2;
        }
        if (tokens_[at].is(".address_size") && tokens_[at + 1].is("64")) at += 2;
        if (at > 0) skip_past(tokens_[at - 1]);
        body_ = at;
    }

    void define(const Statement& statement) {
        using Linkage = Statement::Linkage;
        const auto [found, added] =
            known_.defined.try_emplace(statement.name, Known::Definition{&statement, text_.name});
        if (added || statement.linkage == Linkage::weak) return;
        if (found->second.statement->linkage != Linkage::weak) {
            throw SyntaxError(tokens_[statement.first].line,
                              fmt::format("'{}' is defined in '{}' and in '{}'", demangled(statement.name),
                                          found->second.text, text_.name));
        }
        found->second = {&statement, text_.name};
    }

    std::size_t place_of(const Token& token) const {
        return static_cast<std::size_t>(token.text.data() - text_.ptx.data());
    }
    void copy_until(const Token& token, std::string& out) {
        out += text_.ptx.substr(copied_, place_of(token) - copied_);
        copied_ = place_of(token);
    }
    void skip_past(const Token& token) { copied_ = place_of(token) + token.text.size(); }
    void replace(const Token& token, const std::string& by, std::string& out) {
        copy_until(token, out);
        out += by;
        skip_past(token);
    }

    const Text& text_;
    std::vector<Token> tokens_;
    std::vector<Statement> statements_ = Statements(tokens_).read();
    std::size_t number_;
    Known& known_;
    std::map<std::string, std::string> renamed_;
    std::size_t copied_ = 0, body_ = 0;  // `body_`: the first token after the header
};

}  // namespace

std::string join(std::span<const Text> texts) {
    Known known;
    std::string joined;
    std::deque<Joined> all;  // a deque, because a text's tokens are views of it
    for (const Text& text : texts) all.emplace_back(text, all.size(), known);
    for (Joined& each : all) joined += each.write();
    return fmt::format(".version {}\n.target {}\n.address_size 64\n{}", known.version_text, known.target_text,
                       joined);
}

}  // namespace emulated::ptx
