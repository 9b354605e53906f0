#include <doctest/doctest.h>

#include <bascule/jit/user_headers.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

UserHeaders scan(const std::string& text, const CompileOptions& options) {
    Source source;
    source.text = text;
    return scan_user_headers(source, options, {});
}

CompileOptions searching(const TemporaryDirectory& directory) {
    CompileOptions options;
    options.include_paths = {directory.path()};
    return options;
}

TEST_CASE("a text without headers has no state") {
    const UserHeaders headers = scan("__global__ void k() {}", {});
    CHECK(headers.certain);
    CHECK(headers.state.empty());
}

TEST_CASE("headers are followed however the directive is written") {
    const TemporaryDirectory directory;
    directory.write("a.h", "");
    for (const char* text :
         {"#include \"a.h\"", "#include <a.h>", "  #  include \"a.h\"", "#include\"a.h\"",
          "/* # */ #include \"a.h\"", "#if 0\n#include \"a.h\"\n#endif", "#include \"a.h\" // why",
          "#include \"./a.h\"", "int x;\r\n#include \"a.h\"\r\n"}) {
        CAPTURE(std::string(text));
        const UserHeaders headers = scan(text, searching(directory));
        CHECK(headers.certain);
        CHECK(contains(headers.state, "a.h"));
    }
}

TEST_CASE("what a scan cannot follow is not certain") {
    const TemporaryDirectory directory;
    for (const char* text :
         {"#include HEADER", "#/**/include \"a.h\"", "#\\\ninclude \"a.h\"", "#include \\\n\"a.h\"",
          "#if __has_include(\"a.h\")\n#endif", "#if 1 && \\\n __has_include(<a.h>)\n#endif"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(scan(text, searching(directory)).certain);
    }
    CompileOptions hidden;
    hidden.extra = {"-Iinc"};
    CHECK_FALSE(scan("", hidden).certain);
}

TEST_CASE("headers that include each other end") {
    const TemporaryDirectory directory;
    directory.write("a.h", "#include \"b.h\"\n");
    directory.write("b.h", "#include \"a.h\"\n");
    const UserHeaders headers = scan("#include \"a.h\"", searching(directory));
    CHECK(headers.certain);
    CHECK(contains(headers.state, "a.h"));
    CHECK(contains(headers.state, "b.h"));
}

TEST_CASE("a header's own directory is searched, and in-memory headers are followed") {
    const TemporaryDirectory directory;
    directory.write("sub/a.h", "#include \"b.h\"\n");
    directory.write("sub/b.h", "");
    CompileOptions options = searching(directory);
    options.headers = {{"memory.h", "#include \"sub/a.h\"\n"}};
    CHECK(contains(scan("#include \"memory.h\"", options).state, "sub/b.h"));
}

}  // namespace
}  // namespace bascule::testing
