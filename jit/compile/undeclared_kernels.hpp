// Kernels that an image has and its text does not spell: macros, includes and explicit instantiations make them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bascule {

/// A kernel of an image, by the name that C++ has for it, "ns::add" or "scale<float>", and the image's own.
struct EntryName {
    std::string name;
    std::string lowered_name;
};

/// The entries of `ptx` that are not among `known`, by their lowered names, and are of none of the kernels that the
/// text declares. Without those of anonymous namespaces, which no name expression reaches.
std::vector<EntryName> undeclared_entries(std::string_view ptx, const std::vector<std::string>& known,
                                          const std::vector<std::string>& declared);

}  // namespace bascule
