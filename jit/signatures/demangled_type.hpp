// A C++ type as the demangler writes it, split into parts, and spelled in the usual way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// A type as the demangler writes it, with qualifiers after what they qualify: `float const*`,
/// `bascule::array_view<float const, 2>`.
struct DemangledType {
    std::string name;                      ///< "float", "bascule::array_view"; empty for a pointer
    std::vector<DemangledType> arguments;  ///< template arguments
    std::string literal;                   ///< a template argument that is a value: "3", "-1"
    std::vector<DemangledType> pointee;    ///< one element for a pointer, otherwise empty
    bool constant = false;
    bool is_volatile = false;
    bool is_function = false;  ///< a function, or a pointer or reference to one
    bool is_closed = false;    ///< an array, a reference, a pointer to a member: not parsed further

    bool is_pointer() const noexcept { return !pointee.empty(); }
};

DemangledType parse_type(std::string_view text);

/// `const float*`, `bascule::array_view<const float, 2>`; omits inline namespaces and CCCL's defaults.
std::string spell(const DemangledType& type);

/// Splits at commas outside all brackets; trims the parts.
std::vector<std::string_view> split_list(std::string_view text);

}  // namespace bascule
