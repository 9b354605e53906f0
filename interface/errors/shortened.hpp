// Prepares text of users and other libraries for messages.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// Escapes double quotes, backslashes, control characters and invalid UTF-8, and cuts the text after 60 characters.
std::string shortened(std::string_view text);

}  // namespace bascule
