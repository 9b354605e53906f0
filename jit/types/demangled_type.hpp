// A C++ type as the demangler writes it, read into parts and spelled as a person would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// `float const*`, `bascule::array_view<float const, 2>`: qualifiers follow what they qualify.
struct DemangledType {
    std::string name;                      ///< "float", "bascule::array_view"; empty for a pointer
    std::vector<DemangledType> arguments;  ///< of a template
    std::string literal;                   ///< a template argument that is a value: "3", "-1"
    std::vector<DemangledType> pointee;    ///< one for a pointer, none otherwise
    bool constant = false;
    bool is_volatile = false;
    bool is_function = false;  ///< a function, or a pointer or reference to one
    bool is_closed = false;    ///< an array, a reference, a pointer to a member: not looked into

    bool is_pointer() const noexcept { return !pointee.empty(); }
};

DemangledType parse_type(std::string_view text);

/// `const float*`, `bascule::array_view<const float, 2>`; defaults of CCCL's templates are left out, and so
/// are inline namespaces.
std::string spell(const DemangledType& type);

/// Splits on commas outside every bracket; the parts are trimmed.
std::vector<std::string_view> split_list(std::string_view text);

}  // namespace bascule
