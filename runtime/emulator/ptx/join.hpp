// Joins several PTX texts into one, like a linker.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace emulated::ptx {

struct Text {
    std::string_view name;  ///< for messages
    std::string_view ptx;
};

/// Returns a text with all definitions. Local names that collide are renamed; of several weak definitions the first is
/// kept. Throws: SyntaxError, also for names that are defined twice. Undefined names are not checked here.
std::string join(std::span<const Text> texts);

}  // namespace emulated::ptx
