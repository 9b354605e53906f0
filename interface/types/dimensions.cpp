#include <fmt/format.h>

#include <bascule/interface/types/dimensions.hpp>

namespace bascule {

std::string to_string(const Dimensions& dimensions) {
    std::string text = "(";
    for (int d = 0; d < dimensions.size(); ++d)
        text += fmt::format("{}{}", d == 0 ? "" : ", ", dimensions[d]);
    return text + (dimensions.size() == 1 ? ",)" : ")");
}

}  // namespace bascule
