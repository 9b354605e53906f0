// Lets several images of one text share one set of variables: an image can be given the addresses of another one's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// A `__device__`, `__constant__`, `__managed__` or static variable that PTX defines.
struct PtxVariable {
    std::string name;  ///< mangled, as it is in this PTX
    std::uint64_t bytes = 0;
    bool is_constant = false;  ///< `__constant__`
    bool has_value = false;    ///< its initial value is not zero
    bool is_used = false;      ///< by a function, or by another variable's initial value
    /// Its initial value contains the address of a function, which only code of the same image can call.
    bool points_to_function = false;
    /// Functions read it and do nothing else with its address. Determined only if `points_to_function`; otherwise
    /// false.
    bool is_only_read = false;
};

/// Addresses by mangled name.
using VariableAddresses = std::map<std::string, std::uint64_t, std::less<>>;

/// Advice if two images need one variable and cannot share it.
std::string advice_on_one_image();

/// The variables that the user declared; omits those that the compiler makes, such as the format strings of printf.
std::vector<PtxVariable> variables_of(std::string_view ptx);

/// Removes the definitions of these variables (by mangled name) from the PTX; uses of a variable become uses of the
/// memory at its address. If one of them is `__constant__`, the image reads all constants as global memory, because
/// instructions do not say which constant they read.
std::string with_addresses(std::string_view ptx, const VariableAddresses& addresses);

}  // namespace bascule
