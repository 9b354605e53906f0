// Several PTX texts as one: what a linker makes of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace emulated::ptx {

struct Text {
    std::string_view name;  ///< for messages
    std::string_view ptx;
};

/// One text that defines what they define. A name that is local to one of them is changed where another one has it too;
/// of several weak definitions the first stays. Throws: SyntaxError, also where two texts define a name, and for what
/// none defines.
std::string join(std::span<const Text> texts);

}  // namespace emulated::ptx
