// Messages give advice in the language of the program: Python expressions to Python, C++ to C++.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace bascule {

enum class Language { cpp, python };

/// The bindings set it when they are imported.
inline std::atomic<Language> language_of_advice{Language::cpp};

/// The one of two pieces of advice that the caller can use.
inline std::string advice(std::string_view python, std::string_view cpp) {
    return std::string(language_of_advice.load(std::memory_order_relaxed) == Language::python ? python : cpp);
}

/// A text that names options, `CompileOptions(std="c++20")`, with `CompileOptions{.std = "c++20"}` for C++.
std::string with_options(std::string text);

}  // namespace bascule
