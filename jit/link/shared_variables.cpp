// Source: the PTX ISA, "Variable Declarations", "Initializers", "Addresses as Operands" and "cvta".
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/link/shared_variables.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {
namespace {

/// A part of a PTX text's module scope.
struct Piece {
    enum class Kind : std::uint8_t {
        variable,  ///< `.visible .global .align 4 .u32 n = 1;`
        function,  ///< with its body
        section,   ///< debug information
        other,
    };
    Kind kind = Kind::other;
    std::string_view text;
    std::string_view name;  ///< of a function
};

std::string_view between(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

/// All pieces in order: together they are the text, except white space and comments around them.
std::vector<Piece> pieces_of(std::string_view ptx) {
    static constexpr std::array<std::string_view, 4> linkages = {".visible", ".weak", ".common", ".extern"};
    std::vector<Piece> pieces;
    PtxTokens tokens(ptx);
    const auto add = [&](Piece::Kind kind, const char* begin, std::string_view name = {}) {
        const char* const end = tokens.at_end() ? ptx.data() + ptx.size() : tokens.current().data();
        pieces.push_back({kind, between(begin, end), name});
    };
    while (!tokens.at_end()) {
        const char* const begin = tokens.current().data();
        while (std::ranges::find(linkages, tokens.current()) != linkages.end()) tokens.take();
        if (tokens.is(".entry") || tokens.is(".func")) {
            tokens.take();
            if (tokens.is("(")) tokens.skip_brackets('(', ')');
            const std::string_view name = tokens.take();
            while (!tokens.at_end() && !tokens.is("{") && !tokens.is(";")) tokens.take();
            if (tokens.is("{")) tokens.skip_brackets('{', '}');
            add(Piece::Kind::function, begin, name);
        } else if (tokens.is(".section")) {
            while (!tokens.at_end() && !tokens.is("{")) tokens.take();
            tokens.skip_brackets('{', '}');
            add(Piece::Kind::section, begin);
        } else if (tokens.is(".global") || tokens.is(".const")) {
            tokens.skip_until(";");
            add(Piece::Kind::variable, begin);
        } else {
            tokens.take();
            add(Piece::Kind::other, begin);
        }
    }
    return pieces;
}

/// True for variables of the compiler, which each image keeps for itself. Another image may use the same name for other
/// contents (strings of printf and assert, constant arrays, tables of a switch), and a virtual table points to functions
/// of its own image.
bool is_made_by_compiler(std::string_view name) {
    return name.starts_with('$') || name.starts_with("__unnamed_") || name.starts_with("_ZT") ||
           name.find("_$_") != name.npos;
}

/// Copies a text and replaces parts of it, from beginning to end.
class Rewriter {
  public:
    explicit Rewriter(std::string_view text) : copied_(text.data()), end_(text.data() + text.size()) {}

    void replace(std::string_view part, std::string_view with) {
        result_ += between(copied_, part.data());
        result_ += with;
        copied_ = part.data() + part.size();
    }
    std::string finish() && {
        result_ += between(copied_, end_);
        return std::move(result_);
    }

  private:
    const char* copied_;
    const char* end_;
    std::string result_;
};

/// Replaces variables in an initial value by their addresses: `.global .align 8 .u64 pointer = generic(n);`.
std::string with_numbers(std::string_view variable, const VariableAddresses& addresses) {
    Rewriter rewriter(variable);
    PtxTokens tokens(variable);
    while (!tokens.at_end()) {
        const std::string_view first = tokens.take();
        std::string_view name = first;
        std::string_view last = first;
        if (first == "generic") {
            tokens.take();
            name = tokens.take();
            last = tokens.take();
        }
        if (const auto found = addresses.find(name); found != addresses.end()) {
            rewriter.replace(between(first.data(), last.data() + last.size()),
                             fmt::format("{}", found->second));
        }
    }
    return std::move(rewriter).finish();
}

/// `ld.const.f32` as `ld.global.f32`, `cvta.to.const.u64` as `cvta.to.global.u64`; empty for other instructions.
std::string as_global(std::string_view instruction) {
    const std::size_t at = instruction.find(".const");
    const bool reads_constants =
        at != instruction.npos && (instruction.starts_with("ld.") || instruction.starts_with("cvta."));
    if (!reads_constants) return {};
    return fmt::format("{}.global{}", instruction.substr(0, at), instruction.substr(at + 6));
}

/// Replaces variables in a function or in debug information by their addresses; `constants_too`: and instructions that
/// read constants by those that read global memory. Within brackets, the variable becomes a register that is set to the
/// address at the beginning of the function, because immediate addresses in PTX have 32 bits.
std::string with_registers(std::string_view function, const VariableAddresses& addresses,
                           bool constants_too) {
    Rewriter rewriter(function);
    std::map<std::string_view, std::string> registers;
    std::vector<std::set<std::string_view>> hidden(1);  // names that a declaration in an open block hides
    int brackets = 0;
    const char* body = nullptr;
    for (PtxTokens tokens(function); !tokens.at_end();) {
        const std::string_view token = tokens.take();
        if (token == "{" && body == nullptr) body = token.data() + 1;
        if (token == "[") ++brackets;
        if (token == "]") --brackets;
        if (token == "{") hidden.emplace_back();
        if (token == "}" && hidden.size() > 1) hidden.pop_back();
        if (token == ".reg" || token == ".local" || token == ".shared" || token == ".param") {
            for (; !tokens.at_end() && !tokens.is(";") && !tokens.is(")"); tokens.take())
                hidden.back().insert(tokens.current());
            continue;
        }
        const auto is_hidden = [&](const auto& names) { return names.contains(token); };
        if (std::ranges::any_of(hidden, is_hidden)) continue;
        if (const auto found = addresses.find(token); found != addresses.end()) {
            std::string number = fmt::format("{}", found->second);
            if (brackets > 0) {
                std::string& there = registers[token];
                if (there.empty()) there = fmt::format("%bascule_variable{}", registers.size());
                number = there;
            }
            rewriter.replace(token, number);
        } else if (const std::string global = constants_too ? as_global(token) : ""; !global.empty()) {
            rewriter.replace(token, global);
        }
    }
    std::string text = std::move(rewriter).finish();
    std::string begin;
    for (const auto& [name, there] : registers) {
        begin +=
            fmt::format("\n\t.reg .b64 \t{0};\n\tmov.b64 \t{0}, {1};", there, addresses.find(name)->second);
    }
    if (!begin.empty()) text.insert(static_cast<std::size_t>(body - function.data()), begin);
    return text;
}

std::string_view name_of(const Piece& piece) {
    PtxTokens tokens(piece.text);
    return read_ptx_declaration(tokens, "=;").name;
}

/// The opcode of a statement: "ld.global.u32". Empty if it has none.
std::string_view opcode_of(std::span<const std::string_view> statement) {
    const auto is_opcode = [](std::string_view word) {
        return word[0] >= 'a' && word[0] <= 'z' && word.find('.') != word.npos;
    };
    const auto found = std::ranges::find_if(statement, is_opcode);
    return found == statement.end() ? std::string_view() : *found;
}

/// Whether a function only loads from the variable. Follows its address through registers.
bool only_reads(std::string_view function, std::string_view variable) {
    static constexpr std::array<std::string_view, 6> computing = {"mov.", "add.",  "sub.",
                                                                  "mad.", "cvta.", "selp."};
    std::set<std::string_view> addresses = {variable};
    for (std::size_t known = 0; known != addresses.size();) {
        known = addresses.size();
        std::vector<std::string_view> statement;
        for (PtxTokens tokens(function); !tokens.at_end();) {
            statement.push_back(tokens.take());
            if (statement.back() != ";" && statement.back() != "{" && statement.back() != "}") continue;
            const auto is_address = [&](std::string_view word) { return addresses.contains(word); };
            const std::string_view opcode = opcode_of(statement);
            if (std::ranges::any_of(statement, is_address) && !opcode.starts_with("ld.")) {
                const auto computes = [&](std::string_view prefix) { return opcode.starts_with(prefix); };
                if (std::ranges::none_of(computing, computes)) return false;
                addresses.insert(*std::next(std::ranges::find(statement, opcode)));
            }
            statement.clear();
        }
    }
    return true;
}

}  // namespace

std::string advice_on_one_image() {
    return fmt::format(
        "What is compiled in several steps cannot share it. Compile all instances at once: {}.",
        advice("bascule.compile(text, name_expressions=[\"scale<float>\", \"scale<double>\"])",
               "Module(text, options, cache, {\"scale<float>\", \"scale<double>\"})"));
}

std::vector<PtxVariable> variables_of(std::string_view ptx) {
    const std::vector<Piece> pieces = pieces_of(ptx);
    std::set<std::string_view> functions;
    std::map<std::string_view, int> uses;
    for (const Piece& piece : pieces) {
        if (piece.kind == Piece::Kind::function) functions.insert(piece.name);
        if (piece.kind != Piece::Kind::function && piece.kind != Piece::Kind::variable) continue;
        for (PtxTokens tokens(piece.text); !tokens.at_end(); tokens.take()) {
            if (is_ptx_name(tokens.current())) ++uses[tokens.current()];
        }
    }
    std::vector<PtxVariable> variables;
    for (const Piece& piece : pieces) {
        if (piece.kind != Piece::Kind::variable || piece.text.starts_with(".extern")) continue;
        PtxTokens tokens(piece.text);
        const PtxDeclaration declared = read_ptx_declaration(tokens, "=;");
        if (declared.name.empty() || is_made_by_compiler(declared.name)) continue;
        PtxVariable& variable = variables.emplace_back();
        variable.name = declared.name;
        variable.bytes = declared.bytes();
        variable.is_constant = declared.space == ".const";
        variable.has_value = tokens.is("=");
        variable.is_used = uses[declared.name] > 1;
        for (; !tokens.at_end(); tokens.take())
            variable.points_to_function |= functions.contains(tokens.current());
        const auto reads = [&](const Piece& other) {
            return other.kind != Piece::Kind::function || only_reads(other.text, declared.name);
        };
        variable.is_only_read = variable.points_to_function && std::ranges::all_of(pieces, reads);
    }
    return variables;
}

std::string with_addresses(std::string_view ptx, const VariableAddresses& addresses) {
    const std::vector<Piece> pieces = pieces_of(ptx);
    const auto is_elsewhere = [&](const Piece& piece) {
        return piece.kind == Piece::Kind::variable && addresses.contains(name_of(piece));
    };
    const bool constants_too = std::ranges::any_of(pieces, [&](const Piece& piece) {
        return is_elsewhere(piece) && piece.text.find(".const") != piece.text.npos;
    });
    std::string result;
    for (const Piece& piece : pieces) {
        if (piece.kind == Piece::Kind::function || piece.kind == Piece::Kind::section) {
            result += with_registers(piece.text, addresses, constants_too);
        } else if (piece.kind != Piece::Kind::variable) {
            result += piece.text;
        } else if (!is_elsewhere(piece)) {
            std::string variable = with_numbers(piece.text, addresses);
            const std::size_t space = variable.find(".const");
            if (constants_too && space != variable.npos) variable.replace(space, 6, ".global");
            result += variable;
        }
    }
    return result;
}

}  // namespace bascule
