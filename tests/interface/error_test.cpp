#include <type_traits>

#include "support.hpp"

namespace bascule::testing {
namespace {

TEST_CASE("an argument is counted from 1 in the message and from 0 in the details") {
    const ArgumentError plain(ArgumentError::Kind::overflow, "it is too large.",
                              {.field = "shape", .expected = "int", .got = "3"});
    const ArgumentError named = plain.with_argument(1, "x");
    CHECK(std::string(named.what()) == "argument 2 'x': it is too large.");
    CHECK(named.details().index == 1);
    CHECK(named.details().name == "x");
}

TEST_CASE("naming the argument keeps everything else") {
    const ArgumentError plain(ArgumentError::Kind::overflow, "m",
                              {.field = "shape", .expected = "int", .got = "3"});
    const ArgumentError named = plain.with_argument(0, "n");
    CHECK(named.kind() == ArgumentError::Kind::overflow);
    CHECK(named.details().field == "shape");
    CHECK(named.details().expected == "int");
    CHECK(named.details().got == "3");
}

TEST_CASE("one catch clause takes every error of ours") {
    CHECK(std::is_base_of_v<Error, ArgumentError>);
    CHECK(std::is_base_of_v<Error, CompileError>);
    CHECK(std::is_base_of_v<Error, LibraryError>);
    CHECK(std::is_base_of_v<Error, CudaError>);
}

}  // namespace
}  // namespace bascule::testing
