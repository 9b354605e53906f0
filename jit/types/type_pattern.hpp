// Where the parameters of a kernel template occur in the types of its function parameters.
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
        view,     ///< bascule::array_view<T, N>, masked_view, cuda::std::span<T>: the elements of an array
        unclear,  ///< mentions one in a way that says nothing here: typename Traits<T>::type
    };
    Kind kind = Kind::fixed;
    int element = -1;  ///< the template parameter that is the value's or the elements' type; -1: a fixed type
    int rank = -1;     ///< the template parameter that is the view's number of dimensions; -1: a literal
    bool is_pack = false;   ///< stands for any number of arguments: Ts... values
    bool constant = false;  ///< the elements are const whatever T is: const T*, array_view<const T>

    bool operator==(const TypePattern&) const = default;
};

/// One pattern a type, as the types are written. An `auto` is the next template parameter with `is_auto`.
std::vector<TypePattern> read_patterns(std::span<const std::string> types,
                                       std::span<const TemplateParameter> parameters);

/// Template arguments, one a parameter, by which the parameters can be recognised in the types that the compiler
/// makes of them: a type of our own, or a number that `text` does not have.
std::vector<std::string> markers_for(std::span<const TemplateParameter> parameters, std::string_view text);

/// One pattern a type, as the compiler spells the types of the instance with these markers.
std::vector<TypePattern> read_marked_patterns(std::span<const std::string> types,
                                              std::span<const std::string> markers);

}  // namespace bascule
