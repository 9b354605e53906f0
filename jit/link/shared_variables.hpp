// Several images of one text have one set of variables: an image can be given the addresses of those that another has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// A `__device__`, `__constant__`, `__managed__` or static variable that PTX defines.
struct PtxVariable {
    std::string name;          ///< mangled, as it is in this PTX
    bool is_constant = false;  ///< `__constant__`
    bool is_managed = false;   ///< `__managed__`
    bool has_value = false;    ///< it begins with another value than zero
    bool is_used = false;      ///< by a function, or by another variable's initial value
    /// Its initial value has the address of a function, which only code of the same image can call.
    bool points_to_function = false;
};

/// What to do where two images would need one variable and cannot share it.
std::string advice_on_one_image();

/// Those that a person declared: what the compiler makes, such as the texts of printf, is left out.
std::vector<PtxVariable> variables_of(std::string_view ptx);

/// The PTX without the definitions of these variables, whose names are mangled as it has them. What used one uses the memory at
/// its address. If one of them is `__constant__`, the image reads all constants as global memory: no instruction
/// says which constant it reads.
std::string with_addresses(std::string_view ptx, const std::map<std::string, std::uint64_t>& addresses);

}  // namespace bascule
