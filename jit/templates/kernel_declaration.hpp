// A kernel's parameters as the text declares them, before anything is compiled: where the parameters of its template
// occur in their types; their names, for messages and for reading arguments before the function is chosen.
#pragma once

#include <cstddef>
#include <span>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// One function parameter's type, as far as an argument's type determines template parameters. Indices count the
/// template's parameters.
struct TypePattern {
    enum class Kind : std::uint8_t {
        fixed,    ///< mentions no template parameter
        value,    ///< T
        pointer,  ///< T*, const T*
        /// A view of an array's elements: bascule::array_view<T, N>, bascule::masked_view, cuda::std::span<T>.
        view,
        unclear,  ///< mentions one in a way from which it cannot be deduced: typename Traits<T>::type
    };
    Kind kind = Kind::fixed;
    int element = -1;  ///< the template parameter that is the value's or the elements' type; -1: a fixed type
    int rank = -1;     ///< the template parameter that is the view's number of dimensions; -1: a literal
    bool is_pack = false;   ///< stands for any number of arguments: Ts... values
    bool constant = false;  ///< the elements are const for any T: const T*, array_view<const T>

    bool operator==(const TypePattern&) const = default;
};

/// One pattern for each type, as the text writes it. Each `auto` is the next template parameter with `is_auto`.
std::vector<TypePattern> read_patterns(std::span<const std::string> types,
                                       std::span<const TemplateParameter> parameters);

/// Template arguments by which the parameters can be recognised in the compiler's types, one for each parameter: a
/// marker type, or a number that does not occur in `text`.
std::vector<std::string> markers_for(std::span<const TemplateParameter> parameters, std::string_view text);

/// Returns one pattern for each type. `types` are spelled by the compiler for the instance that has these markers as
/// template arguments.
std::vector<TypePattern> read_marked_patterns(std::span<const std::string> types,
                                              std::span<const std::string> markers);

/// The function parameter that takes argument `index`; a pack takes all arguments that the others leave. -1 if there
/// are too many arguments.
int pattern_index(std::span<const TypePattern> patterns, std::size_t arguments, std::size_t index) noexcept;

/// Returns "scale" for "ns::scale<int>".
inline std::string_view last_component(std::string_view name) noexcept {
    name = name.substr(0, name.find('<'));
    const std::size_t colons = name.rfind("::");
    return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

/// Whether a kernel with this declaration can be called with this many arguments.
bool takes(const KernelDeclaration& declaration, std::size_t arguments);

/// The names of the parameters, if any of `declarations` may be meant. All must accept this number of parameters. A
/// name is empty if two of them disagree.
std::vector<std::string> parameter_names(std::span<const KernelDeclaration* const> declarations,
                                         std::size_t parameters);

/// "template <T, N> void scale(T* x, int n)".
std::string spell(const KernelDeclaration& declaration);

/// A signature for this number of arguments, which all declarations must accept, with the names on which they agree.
/// The types tell only which parameters are pointers or views; they come from the text of the first declaration.
Signature signature_in_text(std::span<const KernelDeclaration* const> declarations, std::size_t arguments);

}  // namespace bascule
