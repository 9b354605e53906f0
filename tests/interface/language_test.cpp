// Advice in messages: Python expressions for Python, C++ for C++.
#include <doctest/doctest.h>

#include <bascule/interface/errors/wording.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("advice is given in the language of the caller") {
    CHECK(advice("to_device(x)", "copy_to_device(...)") == "copy_to_device(...)");
    const InPython python;
    CHECK(advice("to_device(x)", "copy_to_device(...)") == "to_device(x)");
}

TEST_CASE("options are written as the caller writes them") {
    const std::string text =
        "`auto` is C++20: CompileOptions(std=\"c++20\"); or CompileOptions(max_registers=32).";
    CHECK(with_options(text) ==
          "`auto` is C++20: CompileOptions{.std = \"c++20\"}; or CompileOptions{.max_registers = 32}.");
    CHECK(with_options("CompileOptions( is cut") == "CompileOptions( is cut");
    CHECK(with_options("CompileOptions()") == "CompileOptions()");
    const InPython python;
    CHECK(with_options(text) == text);
}
