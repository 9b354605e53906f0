// Finds where the parameters of a kernel template occur in the types of its function parameters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/text/template_header.hpp>

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

}  // namespace bascule
