// Messages give advice in the language of the program, Python or C++.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace bascule {

enum class Language { cpp, python };

/// Language::python as soon as the Python bindings are imported.
inline std::atomic<Language> language_of_advice{Language::cpp};

/// Returns the advice in the program's language.
inline std::string advice(std::string_view python, std::string_view cpp) {
    return std::string(language_of_advice.load(std::memory_order_relaxed) == Language::python ? python : cpp);
}

/// For C++ programs, replaces options such as `CompileOptions(std="c++20")` by `CompileOptions{.std = "c++20"}`.
std::string with_options(std::string text);

}  // namespace bascule
