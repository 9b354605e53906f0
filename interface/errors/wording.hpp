// The wording of messages: advice in the language of the program, Python or C++; text of users and other libraries; and
// the name that the user probably meant.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

/// Escapes double quotes, backslashes, control characters and invalid UTF-8, and cuts the text after 60 characters.
std::string shortened(std::string_view text);

/// The number of letters to add, remove, change or swap with a neighbour to get from one name to the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The nearest of `names`, or "" if none is near. In a near name at most a third of the letters differ, or two in
/// short names.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

/// " Did you mean 'saxpy'?"; empty if none of `names` is near.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace bascule
