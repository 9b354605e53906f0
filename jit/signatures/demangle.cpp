// Source: the Itanium C++ ABI, "Mangling". Writes the same text as the C++ library, including blanks, so that both can
// be read in the same way and compared.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <vector>

#include <bascule/jit/signatures/demangle.hpp>

namespace bascule {
namespace {

struct Builtin {
    std::string_view code;
    std::string_view name;
    std::string_view suffix = {};  ///< for literals; without one, a literal is written as a cast
    bool bare = false;             ///< literals are written as numbers only
};

constexpr std::array builtins = {
    Builtin{"v", "void"},
    Builtin{"w", "wchar_t"},
    Builtin{"b", "bool"},
    Builtin{"c", "char"},
    Builtin{"a", "signed char"},
    Builtin{"h", "unsigned char"},
    Builtin{"s", "short"},
    Builtin{"t", "unsigned short"},
    Builtin{"i", "int", "", true},
    Builtin{"j", "unsigned int", "u"},
    Builtin{"l", "long", "l"},
    Builtin{"m", "unsigned long", "ul"},
    Builtin{"x", "long long", "ll"},
    Builtin{"y", "unsigned long long", "ull"},
    Builtin{"n", "__int128"},
    Builtin{"o", "unsigned __int128"},
    Builtin{"f", "float"},
    Builtin{"d", "double"},
    Builtin{"z", "..."},
    Builtin{"Dn", "decltype(nullptr)"},
    Builtin{"Di", "char32_t"},
    Builtin{"Ds", "char16_t"},
    Builtin{"Du", "char8_t"},
};

/// A type may be written on both sides of the name that it declares: `int (*`, `)(float)`.
struct Text {
    std::string left;
    std::string right;

    bool needs_parentheses() const noexcept { return !right.empty(); }
    std::string whole() const { return left + right; }
};

struct Unknown {};  ///< a part of the grammar that the types of parameter lists do not use

class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {}

    /// A template instance with its return type; all mangled signatures have this form.
    std::string function() {
        expect("_Z");
        expect("N");
        const std::string name = nested_name().whole();
        if (!name.ends_with('>')) throw Unknown{};
        const std::string result = type().whole();
        return result + " " + name + "(" + parameters([&] { return rest_.empty(); }) + ")";
    }

  private:
    static constexpr int deepest = 200;

    bool take(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    void expect(std::string_view text) {
        if (!take(text)) throw Unknown{};
    }
    char next() const {
        if (rest_.empty()) throw Unknown{};
        return rest_.front();
    }
    static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

    std::string digits() {
        const std::size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
        if (count == 0 || count > 20) throw Unknown{};
        std::string text(rest_.substr(0, count));
        rest_.remove_prefix(count);
        return text;
    }

    Text remember(Text text) {
        known_.push_back(text);
        return text;
    }

    std::string source_name() {
        const std::size_t length = std::strtoull(digits().c_str(), nullptr, 10);
        if (length == 0 || length > rest_.size()) throw Unknown{};
        const std::string_view name = rest_.substr(0, length);
        rest_.remove_prefix(length);
        const bool nameless = name.starts_with("_GLOBAL_") && name.size() > 9 && name[9] == 'N';
        return std::string(nameless ? "(anonymous namespace)" : name);
    }

    /// S_, S0_, S1Z_: a component that occurred before.
    Text substitution() {
        expect("S");
        if (take("t")) return {"std", ""};
        std::size_t index = 0;
        if (!take("_")) {
            for (; next() != '_'; rest_.remove_prefix(1)) {
                const char c = next();
                const bool letter = c >= 'A' && c <= 'Z';
                if (!is_digit(c) && !letter) throw Unknown{};
                index = index * 36 + static_cast<std::size_t>(letter ? c - 'A' + 10 : c - '0');
                if (index > known_.size()) throw Unknown{};
            }
            expect("_");
            ++index;
        }
        if (index >= known_.size()) throw Unknown{};
        return known_[index];
    }

    /// Reads the components after N, up to E.
    Text nested_name() {
        std::string name;
        bool first = true;
        while (!take("E")) {
            if (next() == 'S' && first) {
                name = substitution().whole();
                first = false;
                continue;
            }
            first = false;
            if (next() == 'I') {
                name += template_arguments();
            } else {
                take("L");  // internal linkage
                if (!is_digit(next())) throw Unknown{};
                name += (name.empty() ? "" : "::") + source_name();
            }
            remember({name, ""});
        }
        return {name, ""};
    }

    std::string template_arguments() {
        expect("I");
        std::string text = "<";
        bool first = true;
        while (!take("E")) add_argument(text, first);
        text += text.ends_with('>') ? " >" : ">";
        return text;
    }

    void add_argument(std::string& text, bool& first) {
        if (take("J")) {
            while (!take("E")) add_argument(text, first);
            return;
        }
        const std::string argument = next() == 'L' ? literal() : type().whole();
        text += (first ? "" : ", ") + argument;
        first = false;
    }

    std::string literal() {
        expect("L");
        const Builtin* builtin = take_builtin();
        const std::string cast = builtin != nullptr ? std::string(builtin->name) : type().whole();
        const std::string sign = take("n") ? "-" : "";
        const std::string number = sign + digits();
        expect("E");
        if (builtin != nullptr && builtin->code == "b") return number == "0" ? "false" : "true";
        if (builtin != nullptr && (builtin->bare || !builtin->suffix.empty())) {
            return number + std::string(builtin->suffix);
        }
        return "(" + cast + ")" + number;
    }

    const Builtin* take_builtin() {
        for (const Builtin& builtin : builtins) {
            if (take(builtin.code)) return &builtin;
        }
        return nullptr;
    }

    template <class AtEnd>
    std::string parameters(AtEnd at_end) {
        std::string text;
        std::size_t count = 0;
        while (!at_end()) {
            text += (count++ == 0 ? "" : ", ") + type().whole();
        }
        return count == 1 && text == "void" ? "" : text;
    }

    /// `mark` precedes the name: "*", "&", "P::*".
    static Text declarator(Text base, const std::string& mark, bool blank) {
        if (!base.needs_parentheses()) {
            base.left += (blank ? " " : "") + mark;
            return base;
        }
        // An open declarator already has its parenthesis.
        const bool open = base.right.starts_with(')');
        base.left += open ? mark : (base.left.ends_with(' ') ? "(" : " (") + mark;
        if (!open) base.right = ")" + base.right;
        return base;
    }

    Text qualified() {
        std::string qualifiers;
        while (next() == 'r' || next() == 'V' || next() == 'K') {
            const char c = next();
            rest_.remove_prefix(1);
            qualifiers.insert(0, c == 'K' ? " const" : c == 'V' ? " volatile" : " restrict");
        }
        Text base = type();
        base.left += qualifiers;
        return remember(base);
    }

    Text function_type() {
        take("Y");
        const std::string result = type().whole();
        const std::string list = parameters([&] { return take("E"); });
        return remember({result, "(" + list + ")"});
    }

    Text array_type() {
        const std::string extent = next() == '_' ? "" : digits();
        expect("_");
        Text element = type();
        std::string_view inner = element.right;
        if (inner.starts_with(' ')) inner.remove_prefix(1);
        element.right = " [" + extent + "]" + std::string(inner);
        return remember(element);
    }

    Text member_pointer() {
        const std::string owner = type().whole();
        return remember(declarator(type(), owner + "::*", true));
    }

    /// A class, an enumeration, or a substitution; with template arguments.
    Text named() {
        Text name;
        if (take("N")) return nested_name();
        if (next() == 'S') {
            const bool in_std = rest_.starts_with("St");
            name = substitution();
            if (in_std) name = remember({"std::" + source_name(), ""});
        } else if (is_digit(next())) {
            name = remember({source_name(), ""});
        } else {
            throw Unknown{};
        }
        if (!rest_.empty() && next() == 'I') name = remember({name.whole() + template_arguments(), ""});
        return name;
    }

    Text type() {
        if (++depth_ > deepest) throw Unknown{};
        Text text = any_type();
        --depth_;
        return text;
    }

    Text any_type() {
        const char c = next();
        if (c == 'r' || c == 'V' || c == 'K') return qualified();
        if (take("P")) return remember(declarator(type(), "*", false));
        if (take("R")) return remember(declarator(type(), "&", false));
        if (take("O")) return remember(declarator(type(), "&&", false));
        if (take("F")) return function_type();
        if (take("A")) return array_type();
        if (take("M")) return member_pointer();
        if (const Builtin* builtin = take_builtin()) return {std::string(builtin->name), ""};
        return named();
    }

    std::string_view rest_;
    std::vector<Text> known_;
    int depth_ = 0;
};

}  // namespace

std::string demangle(const std::string& mangled) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : read_mangled(mangled);
}

std::string readable_name(const std::string& name) {
    std::string text = name.starts_with("_Z") ? demangle(name) : std::string();
    return text.empty() ? name : text;
}

std::string read_mangled(std::string_view mangled) {
    try {
        return Reader(mangled).function();
    } catch (const Unknown&) {
        return {};
    }
}

}  // namespace bascule
