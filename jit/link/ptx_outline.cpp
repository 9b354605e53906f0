// Reads the declarations in the module scope of a PTX text. Source: the PTX ISA, "Directives" and "Linking Directives".
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(const Code& code, std::string_view why) {
    throw CompileError(fmt::format("{} is not PTX that can be read: {}.", code.name, why));
}

CodeParameter to_parameter(const PtxDeclaration& declared) {
    CodeParameter parameter;
    parameter.bytes = static_cast<std::uint32_t>(declared.bytes());
    parameter.alignment = std::max(declared.alignment, declared.element_bytes);
    using Type = CodeParameter::Type;
    if (declared.is_array) {
        parameter.type = Type::bytes;
    } else if (declared.is_pointer) {
        parameter.type = Type::pointer;
    } else if (declared.type == ".f32" || declared.type == ".f64") {
        parameter.type = Type::floating;
    }
    return parameter;
}

/// Parses "sm_90a" as a virtual architecture.
Arch arch_of(const Code& code, std::string_view target) {
    if (!target.starts_with("sm_") && !target.starts_with("compute_"))
        fail(code, fmt::format("its target '{}' is not an architecture", target));
    return parse_arch(fmt::format("compute_{}", target.substr(target.find('_') + 1)));
}

class Outliner {
  public:
    explicit Outliner(const Code& code) : code_(code), tokens_(code.bytes) {}

    CodeOutline read() {
        if (!tokens_.is(".version")) fail(code_, "it does not begin with .version");
        while (!tokens_.at_end()) read_directive();
        if (!has_target_) fail(code_, "it has no .target");
        for (CodeSymbol& symbol : outline_.symbols) {
            if (symbol.linkage == CodeSymbol::Linkage::external) symbol.is_needed = is_used(symbol.name);
        }
        return std::move(outline_);
    }

  private:
    void read_directive() {
        const std::string_view word = tokens_.current();
        if (word == ".target") {
            tokens_.take();
            outline_.arch = arch_of(code_, tokens_.take());
            has_target_ = true;
            skip_rest_of_list();
        } else if (word == ".version" || word == ".address_size" || word == ".file") {
            tokens_.take();
            tokens_.take();
            if (word == ".file") tokens_.take();  // a number and a name
            skip_rest_of_list();
        } else if (word == ".section") {
            while (!tokens_.at_end() && !tokens_.is("{")) tokens_.take();
            tokens_.skip_brackets('{', '}');
        } else if (word == ".pragma" || word == ".alias") {
            tokens_.skip_until(";");
        } else if (is_ptx_directive(word)) {
            read_symbol();
        } else {
            tokens_.take();
        }
    }

    void skip_rest_of_list() {
        while (tokens_.is(",")) {
            tokens_.take();
            tokens_.take();
        }
    }

    void read_symbol() {
        using Linkage = CodeSymbol::Linkage;
        static const std::map<std::string_view, Linkage> linkages = {{".visible", Linkage::global},
                                                                     {".weak", Linkage::weak},
                                                                     {".common", Linkage::weak},
                                                                     {".extern", Linkage::external}};
        CodeSymbol symbol;
        for (auto found = linkages.find(tokens_.current()); found != linkages.end();
             found = linkages.find(tokens_.current())) {
            symbol.linkage = found->second;
            tokens_.take();
        }
        if (tokens_.is(".entry") || tokens_.is(".func")) {
            read_function(std::move(symbol));
        } else {
            read_variable(std::move(symbol));
        }
    }

    void read_function(CodeSymbol symbol) {
        symbol.kind = tokens_.take() == ".entry" ? CodeSymbol::Kind::kernel : CodeSymbol::Kind::function;
        while (!tokens_.at_end() && !is_ptx_name(tokens_.current())) {
            if (tokens_.is("(")) {
                tokens_.skip_brackets('(', ')');  // the return value
            } else {
                tokens_.take();
            }
        }
        symbol.name = tokens_.take();
        if (tokens_.is("(")) {
            while (!tokens_.at_end() && !tokens_.is(")")) {
                tokens_.take();
                const PtxDeclaration declared = read_ptx_declaration(tokens_, ",)");
                if (symbol.kind == CodeSymbol::Kind::kernel && declared.element_bytes != 0)
                    symbol.parameters.push_back(to_parameter(declared));
            }
            tokens_.take();
        }
        while (!tokens_.at_end() && !tokens_.is("{") && !tokens_.is(";")) tokens_.take();
        const bool has_body = tokens_.is("{");
        if (has_body) {
            tokens_.skip_brackets('{', '}');
        } else {
            tokens_.take();
        }
        // `.visible .func f;` declares a function that is defined later.
        if (has_body || symbol.linkage == CodeSymbol::Linkage::external) add(std::move(symbol));
    }

    void read_variable(CodeSymbol symbol) {
        symbol.kind = CodeSymbol::Kind::variable;
        const PtxDeclaration declared = read_ptx_declaration(tokens_, ";,");
        tokens_.take();
        symbol.name = declared.name;
        symbol.bytes = declared.bytes();
        symbol.is_constant = declared.space == ".const";
        const bool is_dynamic_shared =
            declared.space == ".shared" && symbol.linkage == CodeSymbol::Linkage::external;
        if (!symbol.name.empty() && !is_dynamic_shared) add(std::move(symbol));
    }

    /// Adds a symbol; a definition replaces a declaration.
    void add(CodeSymbol symbol) {
        const auto known = std::ranges::find(outline_.symbols, symbol.name, &CodeSymbol::name);
        if (known == outline_.symbols.end()) {
            outline_.symbols.push_back(std::move(symbol));
        } else if (symbol.linkage != CodeSymbol::Linkage::external) {
            *known = std::move(symbol);
        }
    }

    /// Whether the name occurs outside its declaration.
    bool is_used(std::string_view name) const {
        const std::string_view text = code_.bytes;
        int uses = 0;
        for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + name.size())) {
            const std::size_t end = at + name.size();
            const bool whole =
                (at == 0 || !is_ptx_word(text[at - 1])) && (end == text.size() || !is_ptx_word(text[end]));
            if (whole && ++uses > 1) return true;
        }
        return false;
    }

    const Code& code_;
    PtxTokens tokens_;
    CodeOutline outline_;
    bool has_target_ = false;
};

using Calls = std::map<std::string_view, std::vector<std::string_view>>;

/// Parses `call.uni (result), name, (arguments);` and `call name;`.
std::string_view called_by(PtxTokens& tokens) {
    if (tokens.is("(")) tokens.skip_brackets('(', ')');
    if (tokens.is(",")) tokens.take();
    return tokens.take();
}

/// The functions that each function with a body calls.
Calls calls_of(std::string_view ptx) {
    Calls calls;
    PtxTokens tokens(ptx);
    while (!tokens.at_end()) {
        if (tokens.take() != ".func") continue;
        if (tokens.is("(")) tokens.skip_brackets('(', ')');
        const std::string_view name = tokens.take();
        while (!tokens.at_end() && !tokens.is("{") && !tokens.is(";")) tokens.take();
        if (!tokens.is("{")) continue;
        std::vector<std::string_view>& called = calls[name];
        int depth = 0;
        do {
            const std::string_view token = tokens.take();
            if (token == "{") ++depth;
            if (token == "}") --depth;
            if (token == "call" || token.starts_with("call.")) called.push_back(called_by(tokens));
        } while (depth > 0 && !tokens.at_end());
    }
    return calls;
}

}  // namespace

CodeOutline outline_of_ptx(const Code& ptx) { return Outliner(ptx).read(); }

bool has_unknown_stack(std::string_view ptx) {
    if (ptx.find(".callprototype") != ptx.npos || ptx.find("alloca.") != ptx.npos) return true;
    if (ptx.find("call") == ptx.npos) return false;
    // Functions that call none of the remaining ones cannot be part of a cycle.
    Calls left = calls_of(ptx);
    const auto calls_none = [&](const auto& function) {
        return std::ranges::none_of(function.second, [&](auto name) { return left.contains(name); });
    };
    while (std::erase_if(left, calls_none) > 0) {
    }
    return !left.empty();
}

}  // namespace bascule
