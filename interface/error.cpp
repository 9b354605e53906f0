#include <fmt/format.h>

#include <bascule/interface/error.hpp>

namespace bascule {

ArgumentError ArgumentError::with_argument(int index, const std::string& name) const {
    Details details = details_;
    details.index = index;
    details.name = name;
    return {kind_, fmt::format("argument {} '{}': {}", index + 1, name, what()), std::move(details)};
}

}  // namespace bascule
