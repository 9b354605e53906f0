#include <bascule/interface/errors/language.hpp>

namespace bascule {

std::string with_options(std::string text) {
    if (language_of_advice.load(std::memory_order_relaxed) == Language::python) return text;
    constexpr std::string_view python = "CompileOptions(";
    for (std::size_t at = text.find(python); at != text.npos; at = text.find(python, at + 1)) {
        const std::size_t end = text.find(')', at);
        const std::size_t equals = text.find('=', at);
        if (end == text.npos || equals > end) continue;
        text.replace(end, 1, "}");
        text.replace(equals, 1, " = ");
        text.replace(at + python.size() - 1, 1, "{.");
    }
    return text;
}

}  // namespace bascule
