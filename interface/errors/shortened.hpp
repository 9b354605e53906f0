// Foreign text as messages quote it.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// A value for a message: quotes, control characters and what is not UTF-8 escaped, cut after 60 characters.
std::string shortened(std::string_view text);

}  // namespace bascule
