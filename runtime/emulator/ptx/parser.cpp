// A recursive descent parser. Scopes are a stack: { } blocks declare registers, variables and labels that shadow outer
// ones. A label may be named before it is defined.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "ptx/lexer.hpp"
#include "ptx/module.hpp"

namespace emulated::ptx {
namespace {

using TokenKind = Token::Kind;
using SourcePlace = std::array<std::uint32_t, 3>;  // file, line, column

// The maximum nesting of { } blocks, operands, constants and initialisers. Compilers need a few levels.
constexpr std::size_t most_nested = 256;
constexpr std::uint64_t most_alignment = std::uint64_t{1} << 20;
// Registers of a whole module.
constexpr std::size_t most_registers = std::size_t{1} << 24;

// The meanings of names in one { } block.
struct Scope {
    struct Range {  // %r<5> declares five registers at once
        std::int32_t first = 0;
        std::uint32_t count = 0;
    };
    struct Forward {  // an operand that names a label not seen yet
        std::size_t instruction;
        std::size_t operand;
        std::string_view name;
        std::uint32_t line;
    };
    std::unordered_map<std::string_view, std::int32_t> registers, variables, labels;
    std::unordered_map<std::string_view, Range> ranges;
    std::vector<Forward> forward;
};

/// The newest minor version of each major version. For the newest major version, higher ones than exist are accepted.
constexpr int newest_minor[] = {5, 3, 2, 3, 1, 5, 8, 8, 9};

/// Targets, each with the first PTX version that has it, times ten. Source: ptxas.
struct Target {
    int architecture;
    int version;
};
constexpr Target targets[] = {{20, 20},  {21, 20},  {30, 30},  {32, 40},  {35, 31},  {37, 41}, {50, 40},
                              {52, 41},  {53, 42},  {60, 50},  {61, 50},  {62, 50},  {70, 60}, {72, 61},
                              {75, 63},  {80, 70},  {86, 71},  {87, 74},  {88, 90},  {89, 78}, {90, 78},
                              {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};

class Parser {
  public:
    Parser(std::string_view text, int newest_architecture)
        : tokens_(tokenize(text)), newest_architecture_(newest_architecture) {}

    Module run() {
        if (!accept(".version")) fail("PTX begins with a .version directive: is this PTX text?");
        version();
        if (!peek().is(".target")) fail("a .target directive such as '.target sm_80' must follow .version");
        while (accept(".target")) target();
        if (peek().is(".address_size") && 10 * module_.major + module_.minor < 23)
            fail(".address_size needs PTX of .version 2.3 or newer");
        if (accept(".address_size") && integer("32 or 64") != 64)
            fail("only .address_size 64 is supported: compile for a 64-bit target");
        while (peek().kind != TokenKind::end) top_level();
        return std::move(module_);
    }

  private:
    // --- tokens --------------------------------------------------------------------------------------------

    const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    const Token& take() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }
    bool accept(std::string_view text) {
        if (!peek().is(text)) return false;
        take();
        return true;
    }
    void expect(std::string_view text) {
        if (!accept(text)) fail_before(fmt::format("'{}'", text));
    }
    std::string_view word(std::string_view what) {
        if (peek().kind != TokenKind::word) fail_before(what);
        return take().text;
    }
    std::uint64_t integer(std::string_view what) {
        if (peek().kind != TokenKind::integer) fail_before(what);
        return take().bits;
    }
    std::uint32_t integer_of_32_bits(std::string_view what) {
        const std::uint64_t value = integer(what);
        if (value > UINT32_MAX) fail("{} has 32 bits, and {} needs more", what, value);
        return static_cast<std::uint32_t>(value);
    }
    /// Parses a name that is being declared. A word with a dot is an opcode and not a name.
    std::string_view new_name(std::string_view what) {
        if (peek().text.find('.') != std::string_view::npos) fail_before(what);
        return word(what);
    }
    [[noreturn]] void fail_before(std::string_view expected) const {
        fail("expected {} before '{}'", expected, peek().text);
    }
    // One level of recursion. Limits the depth of the stack, and later of the operands' destructors.
    class Level {
      public:
        explicit Level(Parser& parser) : parser_(parser) {
            if (++parser.depth_ > most_nested) parser.fail_nested();
        }
        ~Level() { --parser_.depth_; }
        Level(Level&&) = delete;

      private:
        Parser& parser_;
    };
    [[noreturn]] void fail_nested() const { fail("this is nested more than {} levels deep", most_nested); }
    [[noreturn]] void fail(const std::string& message) const { throw SyntaxError(peek().line, message); }
    template <class First, class... Others>
    [[noreturn]] void fail(fmt::format_string<First, Others...> message, First&& first,
                           Others&&... others) const {
        fail(fmt::format(message, std::forward<First>(first), std::forward<Others>(others)...));
    }

    // --- module scope --------------------------------------------------------------------------------------

    void top_level() {
        const Token& token = peek();
        if (token.kind == TokenKind::word && at_ > 0 && token.text.starts_with("$")) {  // stray label
            fail("a label outside of a function");
        }
        if (accept(".file")) return file();
        if (accept(".section")) return section();
        if (accept(".pragma")) return skip_past(";");
        is_extern_ = accept(".extern");
        is_local_ = !is_extern_ && !accept(".visible") && !accept(".weak") && !accept(".common");
        if (accept(".entry")) return function(true);
        if (accept(".func")) return function(false);
        if (accept(".alias")) return skip_past(";");
        if (peek().is(".param") || peek().is(".local"))
            fail("a {} variable is declared in a function", peek().text);
        if (const auto space = variable_space()) return variables(*space, module_.variables, nullptr);
        fail("'{}' is not allowed at module scope", peek().text);
    }

    void version() {
        const Token& token = take();
        const std::string_view text = token.text;
        const std::size_t dot = text.find('.');  // not found in 0d3FF0000000000000, which is a number too
        if (token.kind != TokenKind::floating || dot == text.npos) fail(".version needs MAJOR.MINOR");
        std::from_chars(text.data(), text.data() + text.size(), module_.major);
        std::from_chars(text.data() + dot + 1, text.data() + text.size(), module_.minor);
        const bool exists = module_.major >= 1 &&
                            module_.major <= static_cast<int>(std::size(newest_minor)) &&
                            module_.minor <= newest_minor[module_.major - 1];
        if (!exists) fail("PTX of .version {} is not known here", text);
    }

    void target() {
        module_.target = word("a target such as sm_80");
        if (!module_.target.starts_with("sm_")) fail("'{}' is not a target such as sm_80", module_.target);
        const std::size_t number =
            std::min(module_.target.find_first_of("0123456789"), module_.target.size());
        std::from_chars(module_.target.data() + number, module_.target.data() + module_.target.size(),
                        module_.architecture);
        const auto* const known = std::ranges::find(targets, module_.architecture, &Target::architecture);
        // The a of sm_90a: the target of one architecture, with more instructions. The f of sm_100f: of a family.
        const std::size_t digits = module_.target.find_last_of("0123456789") + 1 - number;
        const std::string_view suffix = module_.target.substr(number + digits);
        module_.architecture_specific = suffix == "a";
        const bool has_suffix = module_.architecture_specific ? module_.architecture >= 90
                                                              : suffix == "f" && module_.architecture >= 100;
        if (known == std::end(targets) || !(suffix.empty() || has_suffix))
            fail("'{}' is not a target", module_.target);
        const int suffix_version = suffix == "f" ? 88 : suffix == "a" ? 80 : 0;
        const int version = std::max(known->version, suffix_version);
        if (10 * module_.major + module_.minor < version)
            fail("{} needs PTX of .version {}.{} or newer", module_.target, version / 10, version % 10);
        if (newest_architecture_ != 0 && module_.architecture > newest_architecture_) {
            fail("this PTX is for {}, and the device is sm_{}: compile for compute_{} or older",
                 module_.target, newest_architecture_, newest_architecture_);
        }
        while (accept(",")) {
            const std::string_view option = word("an option of the target");
            if (option != "debug" && !option.starts_with("texmode_") && !option.starts_with("sm_"))
                fail("'{}' is not an option of a target", option);
            if (option == "debug") module_.debug = true;
        }
    }

    void file() {
        const std::uint32_t index = integer_of_32_bits("a file number");
        if (peek().kind != TokenKind::string) fail(".file needs a name in quotes");
        if (std::ranges::find(module_.files, index, &Module::File::index) != module_.files.end())
            fail("two files have the number {}", index);
        module_.files.push_back({index, take().text});
        while (accept(",")) integer("a time stamp or a size");
    }

    void section() {
        take();
        expect("{");
        for (int depth = 1; depth > 0;) {
            if (peek().kind == TokenKind::end) fail("this .section is never closed: add }");
            if (peek().is("{")) ++depth;
            if (peek().is("}")) --depth;
            take();
        }
    }

    void skip_past(std::string_view what) {
        while (!peek().is(what)) {
            if (peek().kind == TokenKind::end) fail("expected '{}'", what);
            take();
        }
        take();
    }

    SourcePlace source_place() {
        SourcePlace made;
        for (std::uint32_t& part : made) part = integer_of_32_bits("a file, line or column");
        return made;
    }

    void loc() {
        loc_ = source_place();
        caller_ = {};
        if (!accept(",")) return;
        // function_name LABEL [+ offset], inlined_at FILE LINE COLUMN. Code inlined from a header is reported in that
        // header, as debuggers do. The call may itself be in inlined code.
        while (peek().kind == TokenKind::word || peek().is("+") || peek().is(",") ||
               peek().kind == TokenKind::integer) {
            const bool last = peek().is("inlined_at");
            take();
            if (last) {
                const SourcePlace at = source_place();
                const auto outer = callers_.find(at);
                caller_ = outer == callers_.end() ? at : outer->second;
                callers_[loc_] = caller_;
                return;
            }
        }
    }

    // --- variables -----------------------------------------------------------------------------------------

    std::optional<Space> variable_space() {
        if (accept(".global")) return Space::global;
        if (accept(".const")) return Space::constant;
        if (accept(".shared")) return Space::shared;
        if (accept(".local")) return Space::local;
        if (accept(".param")) return Space::param;
        return std::nullopt;
    }

    Type type() {
        if (peek().kind != TokenKind::directive) fail("expected a type such as .b32");
        const auto found = type_named(peek().text.substr(1));
        // Other types exist only in instructions.
        const bool declarable =
            found && (*found == Type::pred || is_bits(*found) || is_integer(*found) || *found == Type::f16 ||
                      *found == Type::f16x2 || *found == Type::f32 || *found == Type::f64);
        if (!declarable) fail("a variable cannot have the type {}", peek().text);
        take();
        return *found;
    }

    // Parses everything between the space and the name: .align 8 .v4 .b8, and for kernel parameters .ptr .global .align 4.
    Variable declared(Space space) {
        Variable variable;
        variable.space = space;
        variable.line = peek().line;
        variable.is_extern = is_extern_;
        std::uint32_t alignment = 0, lanes = 1;
        bool typed = false;
        for (;;) {
            if (accept(".align")) {
                const std::uint64_t value = integer("an alignment");
                if (!std::has_single_bit(value) || value > most_alignment)
                    fail("an alignment is a power of two up to {}", most_alignment);
                if (!in_ptr_) alignment = static_cast<std::uint32_t>(value);
            } else if (accept(".v2")) {
                lanes = 2;
            } else if (accept(".v4")) {
                lanes = 4;
            } else if (accept(".ptr")) {
                in_ptr_ = true;  // later attributes describe the pointee
            } else if (in_ptr_ &&
                       (accept(".global") || accept(".const") || accept(".shared") || accept(".local"))) {
            } else if (accept(".managed") || accept(".attribute")) {
                if (accept("(")) skip_past(")");
            } else if (!typed && peek().kind == TokenKind::directive) {
                if (peek().is(".texref") || peek().is(".samplerref") || peek().is(".surfref")) {
                    take();  // texture references: kernels that use them are refused, the module is not
                    variable.type = Type::b64;
                } else {
                    variable.type = type();
                }
                typed = true;
            } else {
                break;
            }
        }
        in_ptr_ = false;
        if (!typed) fail("this variable has no type: write for example .b32 before its name");
        if (variable.type == Type::pred) fail("a predicate is a register: declare it with .reg");
        element_bytes_ = bytes_of(variable.type) * lanes;
        variable.alignment = std::max(alignment, element_bytes_ == 0 ? 1u
                                                 : alignment         ? alignment
                                                                     : element_bytes_);
        return variable;
    }

    std::uint64_t product(std::uint64_t a, std::uint64_t b) const {
        std::uint64_t value = 0;
        if (__builtin_mul_overflow(a, b, &value)) fail("this array is larger than any memory");
        return value;
    }

    void dimensions(Variable& variable) {
        std::uint64_t elements = 1;
        while (accept("[")) {
            if (accept("]")) {
                variable.unsized = true;
                continue;
            }
            elements = product(elements, integer("an array length"));
            expect("]");
        }
        variable.bytes = variable.unsized ? 0 : product(elements, element_bytes_);
    }

    void variables(Space space, std::vector<Variable>& into, Scope* scope) {
        Variable model = declared(space);
        do {
            Variable variable = model;
            variable.line = peek().line;
            variable.name = new_name("a variable's name");
            if (accept("<"))  // .param .b32 p<4>: only in hand-written code
                fail("parameterised variable names are for registers only ({} asked)", integer("a count"));
            const bool is_array = peek().is("[");
            dimensions(variable);
            if (accept("=")) {
                if (space != Space::global && space != Space::constant)
                    fail("'{}' cannot have an initial value: only .global and .const variables can",
                         variable.name);
                if (peek().is("{") != is_array) fail("an array is initialised by { }, and nothing else is");
                initializer(variable);
                if (variable.unsized) {
                    variable.bytes = variable.initial.size();
                    variable.unsized = false;
                }
            }
            if (variable.bytes == 0 && !variable.is_extern)
                fail("'{}' has no size: only .extern variables may be declared without one", variable.name);
            if (scope) {
                declare(scope->variables, variable.name, into.size());
            } else {
                if (is_local_ && declared_names_.contains(variable.name) && !defined_.contains(variable.name))
                    fail("'{}' was declared .extern: define it .visible", variable.name);
                declare_in_module(variable.name, !variable.is_extern);
            }
            into.push_back(std::move(variable));
        } while (accept(","));
        expect(";");
    }

    void initializer(Variable& variable) {
        const Level level(*this);
        if (accept("{")) {
            if (accept("}")) return;
            do {
                initializer(variable);
            } while (accept(","));
            expect("}");
            return;
        }
        const unsigned bytes = bytes_of(variable.type);
        if (bytes > 8) fail("initial values of 128 bits are written as two of .b64");
        std::uint64_t bits = 0;
        if (peek().kind == TokenKind::word) {
            if (bytes != 8) fail("an address needs 8 bytes, or a mask for one of them: 0xFF(name)");
            if (variable.type != Type::u64) fail("a variable that begins with an address has the type .u64");
            address(variable);
        } else if (is_float(variable.type)) {
            if (peek().kind == TokenKind::integer)
                fail("a floating-point variable begins with a floating-point number");
            bits = float_constant(variable.type);
        } else {
            bits = constant();
            if (accept("(")) bits = masked(variable, bits);
        }
        const std::size_t at = variable.initial.size();
        variable.initial.resize(at + bytes);
        std::memcpy(variable.initial.data() + at, &bits, bytes);
    }

    /// Parses `generic(name)+8` or `name`; the caller adds the bytes.
    Variable::Reference& address(Variable& variable) {
        Variable::Reference& reference = variable.references.emplace_back();
        reference.offset = variable.initial.size();
        const bool is_generic = accept("generic");
        if (is_generic) expect("(");
        reference.symbol = word("a symbol");
        if (!declared_names_.contains(reference.symbol))
            fail("'{}' must be declared before the variable that begins with its address", reference.symbol);
        if (is_generic) expect(")");
        if (peek().is("+") || peek().is("-")) {
            const bool minus = take().is("-");
            const auto value = static_cast<std::int64_t>(constant());
            reference.addend = minus ? -value : value;
        }
        return reference;
    }

    /// Parses what follows `0xFF00(`: one byte of an address or number. Returns that byte of a number.
    std::uint64_t masked(Variable& variable, std::uint64_t mask) {
        const auto shift = static_cast<unsigned>(std::countr_zero(mask));
        if (variable.type != Type::u8 || mask == 0 || shift % 8 != 0 || mask >> shift != 0xFF)
            fail("a mask selects one byte, for a variable of .u8: 0xFF, 0xFF00, ...");
        std::uint64_t value = 0;
        if (peek().kind == TokenKind::word) {
            Variable::Reference& reference = address(variable);
            reference.first_byte = shift / 8;
            reference.bytes = 1;
        } else {
            value = constant() >> shift & 0xFF;
        }
        expect(")");
        return value;
    }

    std::uint64_t float_constant(Type type) {
        const bool minus = accept("-");
        if (!minus) accept("+");
        const Token& token = take();
        double value = 0;
        if (token.kind == TokenKind::float_bits) {
            value = std::bit_cast<float>(static_cast<std::uint32_t>(token.bits));
            if (type == Type::f32 && !minus) return token.bits;
        } else if (token.kind == TokenKind::floating) {
            value = std::bit_cast<double>(token.bits);
        } else if (token.kind == TokenKind::integer) {
            value = static_cast<double>(token.bits);
        } else {
            fail("expected a floating-point constant");
        }
        if (minus) value = -value;
        if (type == Type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
        if (type == Type::f64) return std::bit_cast<std::uint64_t>(value);
        fail("initialisers of this type are written as .b16");
    }

    std::uint64_t constant() {
        std::uint64_t value = primary_constant();
        for (;;) {
            if (accept("+"))
                value += primary_constant();
            else if (accept("-"))
                value -= primary_constant();
            else if (accept("*"))
                value *= primary_constant();
            else
                return value;
        }
    }
    std::uint64_t primary_constant() {
        const Level level(*this);
        if (accept("-")) return 0 - primary_constant();
        if (accept("+")) return primary_constant();
        if (accept("~")) return ~primary_constant();
        if (accept("!")) return primary_constant() == 0;
        if (accept("(")) {
            const std::uint64_t value = constant();
            expect(")");
            return value;
        }
        if (accept("WARP_SZ")) return 32;
        return integer("an integer constant");
    }

    // --- functions -----------------------------------------------------------------------------------------

    void function(bool is_entry) {
        Function made;
        made.is_entry = is_entry;
        made.line = peek().line;
        function_ = &made;
        scopes_.clear();
        scopes_.emplace_back();
        loc_ = caller_ = {};
        callers_.clear();
        used_bytes_ = ~0u;
        accept(".noreturn");
        if (peek().is("(")) made.results = parameters();
        made.name = new_name("a function's name");
        if (peek().is("(")) made.parameters = parameters();
        while (peek().kind == TokenKind::directive) attribute(made);
        if (accept("{")) {
            made.has_body = true;
            body();
        } else {
            expect(";");
        }
        function_ = nullptr;
        declare_in_module(made.name, made.has_body);
        // A declaration may precede or follow the definition, which is kept.
        const auto [known, is_new] = functions_.try_emplace(made.name, module_.functions.size());
        if (is_new)
            module_.functions.push_back(std::move(made));
        else if (made.has_body)
            module_.functions[known->second] = std::move(made);
    }

    // --- names ---------------------------------------------------------------------------------------------

    [[noreturn]] void fail_duplicate(std::string_view name) const { fail("'{}' is defined twice", name); }

    void declare_in_module(std::string_view name, bool defines) {
        declared_names_.insert(name);
        if (defines && !defined_.insert(name).second) fail_duplicate(name);
    }

    // Declares a name in the innermost block. `names` is one of its maps.
    void declare(std::unordered_map<std::string_view, std::int32_t>& names, std::string_view name,
                 std::size_t index) {
        const Scope& scope = scopes_.back();
        if (scope.registers.contains(name) || scope.variables.contains(name) || scope.labels.contains(name) ||
            find_in_range(scope, name) >= 0)
            fail_duplicate(name);
        names[name] = static_cast<std::int32_t>(index);
    }

    std::vector<std::int32_t> parameters() {
        std::vector<std::int32_t> indices;
        expect("(");
        if (accept(")")) return indices;
        do {
            if (accept(".reg"))
                fail("functions that pass registers are not supported: pass .param variables");
            expect(".param");
            Variable variable = declared(Space::param);
            if (variable.type == Type::f16x2) fail("a parameter cannot have the type .f16x2");
            variable.name = new_name("a parameter's name");
            dimensions(variable);
            declare(scopes_.back().variables, variable.name, function_->variables.size());
            indices.push_back(static_cast<std::int32_t>(function_->variables.size()));
            function_->variables.push_back(std::move(variable));
        } while (accept(","));
        expect(")");
        return indices;
    }

    // Parses attributes between a function's parameters and its body.
    void attribute(Function& made) {
        static constexpr struct {
            std::string_view name;
            std::uint32_t Function::*bound;  ///< set to the product of at most `most` numbers
            std::array<std::uint32_t, 3> Function::*extents;
            std::size_t most;
        } rows[] = {
            {".maxntid", &Function::max_threads, nullptr, 3},
            {".reqntid", &Function::max_threads, &Function::required_block, 3},
            {".reqnctapercluster", nullptr, &Function::cluster, 3},
            {".maxnreg", &Function::max_registers, nullptr, 1},
            {".minnctapersm", &Function::min_blocks, nullptr, 1},
            {".maxclusterrank", &Function::max_cluster_rank, nullptr, 1},
        };
        const Token& token = take();
        if (token.is(".pragma")) return skip_past(";");
        if (token.is(".noreturn") && !made.is_entry) return;
        if (made.is_entry && token.is(".explicitcluster")) {
            made.explicit_cluster = true;
            return;
        }
        const auto* row = std::ranges::find(rows, token.text, [](const auto& each) { return each.name; });
        if (row == std::end(rows) || !made.is_entry)
            fail("'{}' is not a directive of a {}", token.text, made.is_entry ? "kernel" : "function");
        std::array<std::uint32_t, 3> extents{1, 1, 1};
        std::uint64_t product = 1;
        for (std::size_t axis = 0; axis < row->most && (axis == 0 || accept(",")); ++axis) {
            extents[axis] = static_cast<std::uint32_t>(integer("a number"));
            product *= extents[axis];
        }
        if (product == 0) fail("the numbers of {} are positive", token.text);
        if (row->bound != nullptr)
            made.*row->bound = static_cast<std::uint32_t>(std::min<std::uint64_t>(product, UINT32_MAX));
        if (row->extents != nullptr) made.*row->extents = extents;
    }

    // Parses statements after "{" until the "}" of the function. Inner blocks open and close scopes.
    void body() {
        while (!scopes_.empty()) {
            if (peek().kind == TokenKind::end) fail("the body of this function is never closed: add }");
            if (accept("{")) {
                if (scopes_.size() >= most_nested) fail_nested();
                scopes_.emplace_back();
            } else if (accept("}")) {
                close_scope();
            } else {
                statement();
            }
        }
    }

    // Labels that were named but not found are looked up in the enclosing block.
    void close_scope() {
        Scope closed = std::move(scopes_.back());
        scopes_.pop_back();
        for (const Scope::Forward& use : closed.forward) {
            const auto found = closed.labels.find(use.name);
            if (found != closed.labels.end()) {
                Operand& operand = function_->body[use.instruction].operands[use.operand];
                operand.kind = Operand::Kind::label;
                operand.index = found->second;
            } else if (!scopes_.empty()) {
                scopes_.back().forward.push_back(use);
            }
        }
    }

    void statement() {
        const Token& token = peek();
        if (accept(".loc")) return loc();
        if (accept(".pragma")) return pragma();
        if (accept(".reg")) return registers();
        if (token.is(branch_targets)) return instruction();
        if (accept(".calltargets") || accept(".callprototype")) return skip_past(";");
        if (accept(".section")) return section();
        if (token.kind == TokenKind::directive) {
            is_extern_ = false;  // only declarations at module scope can be .extern
            if (const auto space = variable_space()) {
                return variables(*space, function_->variables, &scopes_.back());
            }
            fail("'{}' is not allowed in a function", token.text);
        }
        if (token.kind == TokenKind::word && peek(1).is(":")) {
            const std::string_view label = new_name("a label");
            declare(scopes_.back().labels, label, function_->labels.size());
            function_->labels.push_back({label, function_->body.size()});
            take();
            return;
        }
        instruction();
    }

    // "used_bytes_mask N": of the bytes of the next load, those with a bit in N are used.
    void pragma() {
        static constexpr std::string_view used = "used_bytes_mask ";
        if (peek().kind == TokenKind::string && peek().text.starts_with(used)) {
            std::string_view mask = peek().text.substr(used.size());
            const bool hexadecimal = mask.starts_with("0x");
            if (hexadecimal) mask.remove_prefix(2);
            const char* const end = mask.data() + mask.size();
            const auto parsed = std::from_chars(mask.data(), end, used_bytes_, hexadecimal ? 16 : 10);
            if (parsed.ec != std::errc() || parsed.ptr != end)
                fail("used_bytes_mask needs an integer of 32 bits");
        }
        skip_past(";");
    }

    void registers() {
        const Type kind = type();
        do {
            const std::string_view name = new_name("a register's name");
            const std::size_t first = function_->registers.size();
            std::uint64_t count = 1;
            if (accept("<")) {
                count = integer("a count");
                expect(">");
                const Scope::Range range{static_cast<std::int32_t>(first), static_cast<std::uint32_t>(count)};
                if (!scopes_.back().ranges.try_emplace(name, range).second) fail_duplicate(name);
            } else {
                declare(scopes_.back().registers, name, first);
            }
            if (count > most_registers - registers_)
                fail("this module declares more than {} registers", most_registers);
            registers_ += count;
            function_->registers.resize(function_->registers.size() + count, kind);
        } while (accept(","));
        expect(";");
    }

    static std::int32_t find_in_range(const Scope& scope, std::string_view name) {
        if (scope.ranges.empty()) return -1;
        const std::size_t digits = name.find_last_not_of("0123456789") + 1;
        if (digits == name.size()) return -1;
        std::uint32_t number = 0;
        std::from_chars(name.data() + digits, name.data() + name.size(), number);
        const auto range = scope.ranges.find(name.substr(0, digits));
        return range != scope.ranges.end() && number < range->second.count
                   ? range->second.first + static_cast<std::int32_t>(number)
                   : -1;
    }

    std::int32_t find_register(std::string_view name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            if (const auto found = scope->registers.find(name); found != scope->registers.end())
                return found->second;
            if (const std::int32_t index = find_in_range(*scope, name); index >= 0) return index;
        }
        return -1;
    }

    // --- instructions --------------------------------------------------------------------------------------

    void instruction() {
        Instruction made;
        made.line = peek().line;
        made.file = loc_[0];
        made.source_line = loc_[1];
        made.caller_file = caller_[0];
        made.caller_line = caller_[1];
        if (accept("@")) {
            made.guard_negated = accept("!");
            made.guard = find_register(word("a predicate register"));
            if (made.guard < 0 || function_->registers[static_cast<std::size_t>(made.guard)] != Type::pred)
                fail("the guard of an instruction is a register of type .pred");
        }
        made.opcode = accept(branch_targets) ? branch_targets : word("an instruction");
        made.used_bytes = std::exchange(used_bytes_, ~0u);
        while (!accept(";")) {
            const std::string_view name = peek().text;
            made.operands.push_back(operand());
            Operand& added = made.operands.back();
            if (added.kind == Operand::Kind::symbol) {
                scopes_.back().forward.push_back(
                    {function_->body.size(), made.operands.size() - 1, name, made.line});
            }
            if (accept(",")) {
                if (peek().is(";")) fail_before("an operand");
            } else if (!peek().is(";")) {
                fail("expected ',' or ';' before '{}': is a semicolon missing?", peek().text);
            }
        }
        function_->body.push_back(std::move(made));
    }

    Operand operand() {
        Operand made = single_operand();
        if (accept("|")) {
            Operand pair;
            pair.kind = Operand::Kind::pair;
            pair.parts.push_back(std::move(made));
            pair.parts.push_back(single_operand());
            return pair;
        }
        return made;
    }

    Operand single_operand() {
        const Level level(*this);
        Operand made;
        if (accept("{")) return sequence(Operand::Kind::vector, "}");
        if (accept("(")) return sequence(Operand::Kind::list, ")");
        if (accept("[")) return address();
        if (accept("_")) return made;
        if (accept("!")) {
            made = single_operand();
            made.negated = !made.negated;
            return made;
        }
        if (peek().is("-") && peek(1).kind == TokenKind::word && peek(1).text.starts_with("%")) {
            take();
            made = named();
            made.negated = true;
            return made;
        }
        if (peek().kind == TokenKind::word && !peek().is("WARP_SZ")) {
            made = named();
            if (made.kind != Operand::Kind::reg && made.kind != Operand::Kind::special &&
                accept("+")) {  // mov.u64 %rd1, table+8
                Operand sum;
                sum.kind = Operand::Kind::sum;
                sum.bits = constant();
                sum.parts.push_back(std::move(made));
                return sum;
            }
            return made;
        }
        return number();
    }

    Operand number() {
        Operand made;
        const bool negative = peek().is("-");
        const Token& after = peek(negative ? 1 : 0);
        if (after.kind == TokenKind::floating || after.kind == TokenKind::float_bits) {
            if (negative) take();
            take();
            made.kind =
                after.kind == TokenKind::floating ? Operand::Kind::floating : Operand::Kind::float_bits;
            made.bits = after.bits;
            if (negative) made.bits ^= after.kind == TokenKind::floating ? 1ull << 63 : 1ull << 31;
            return made;
        }
        made.kind = Operand::Kind::integer;
        made.bits = constant();
        return made;
    }

    Operand named() {
        Operand made;
        const std::string_view name = take().text;
        made.index = find_register(name);
        if (made.index >= 0) {
            made.kind = Operand::Kind::reg;
            return made;
        }
        // %r1.b0 is a selector; %tid.x is not, even if a register is called %tid.
        const std::size_t dot = name.rfind('.');
        if (dot != name.npos && name.find_first_not_of("01234567", dot + 2) == name.npos &&
            (name.substr(dot, 2) == ".b" || name.substr(dot, 2) == ".h")) {
            made.index = find_register(name.substr(0, dot));
            if (made.index >= 0) {
                made.kind = Operand::Kind::reg;
                made.name = name.substr(dot + 1);
                return made;
            }
        }
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            if (const auto found = scope->variables.find(name); found != scope->variables.end()) {
                made.kind = Operand::Kind::variable;
                made.index = found->second;
                return made;
            }
        }
        made.kind = name.starts_with("%") ? Operand::Kind::special : Operand::Kind::symbol;
        made.name = name;
        return made;
    }

    Operand sequence(Operand::Kind kind, std::string_view close) {
        Operand made;
        made.kind = kind;
        if (accept(close)) return made;
        do {
            made.parts.push_back(operand());
        } while (accept(","));
        expect(close);
        return made;
    }

    Operand address() {
        Operand made;
        made.kind = Operand::Kind::address;
        if (peek().kind == TokenKind::word) {
            made.parts.push_back(named());
            if (accept("+")) made.bits = constant();
        } else {
            made.bits = constant();
        }
        while (accept(",")) made.parts.push_back(single_operand());  // a texture or surface operand
        expect("]");
        return made;
    }

    std::vector<Token> tokens_;
    int newest_architecture_;
    std::size_t at_ = 0;
    Module module_;
    Function* function_ = nullptr;
    std::unordered_map<std::string_view, std::size_t> functions_;  ///< by name: the index in the module
    std::unordered_set<std::string_view> declared_names_;  ///< of variables and functions of the module
    std::unordered_set<std::string_view> defined_;         ///< names defined in the module
    std::vector<Scope> scopes_;
    std::size_t depth_ = 0;           ///< nesting depth, see Level
    std::size_t registers_ = 0;       ///< in the module so far
    std::uint32_t used_bytes_ = ~0u;  ///< for the next load
    bool is_extern_ = false;          ///< the next declaration is .extern
    bool is_local_ = false;           ///< the next declaration has none of .extern, .visible, .weak, .common
    bool in_ptr_ = false;
    unsigned element_bytes_ = 0;
    SourcePlace loc_{}, caller_{};
    std::map<SourcePlace, SourcePlace>
        callers_;  ///< by place in inlined code: the call in the outermost function
};

}  // namespace

Module parse(std::string_view text, int newest_architecture) {
    return Parser(text, newest_architecture).run();
}

}  // namespace emulated::ptx
