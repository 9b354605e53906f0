// Reads the parameters in `template <...>`, and splits and spells lists of declarations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bascule {

struct Token;  // lexer.hpp

/// One parameter of a kernel template.
struct TemplateParameter {
    enum class Kind : std::uint8_t {
        type,           ///< typename T
        value,          ///< int N
        template_,      ///< template <class> class C
        type_or_value,  ///< Name T: a concept's type or a named type's value; the text alone does not say
    };
    Kind kind = Kind::type;
    std::string name;              ///< empty if it has none
    std::string default_argument;  ///< as written; empty if it has none
    bool is_pack = false;
    bool is_auto = false;  ///< of an abbreviated template: it has no name in the text

    bool operator==(const TemplateParameter&) const = default;
};

/// Parses the tokens between the angle brackets.
std::vector<TemplateParameter> read_template_header(std::span<const Token> tokens);

/// Splits at commas outside all brackets.
std::vector<std::span<const Token>> split_at_commas(std::span<const Token> tokens);

/// The tokens as text, with blanks where they are needed: "const ns::Pair<T, 2>*".
std::string spell(std::span<const Token> tokens);

}  // namespace bascule
