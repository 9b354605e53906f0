#include <string>

#include <doctest/doctest.h>

#include <bascule/jit/diagnostics/diagnostics.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

Source source_of(std::string text) {
    Source source;
    source.text = std::move(text);
    source.name = "kernels.cu";
    return source;
}

TEST_CASE("a log is read message by message") {
    const std::vector<Diagnostic> got = parse_log(
        "/bascule/1.cu(3): error: expected a \";\"\n  int y;\n  ^\n\n"
        "inc/a(1).h(12): warning #177-D: variable \"x\" was declared but never referenced\n  int x;\n"
        "      ^\n\n"
        "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n"
        "At end of source: error: expected a \"}\"\n/bascule/1.cu(2): note #3196-D: to match this \"{\"\n"
        "  {\n  ^\n\n"
        "/bascule/1.cu(1): catastrophic error: cannot open source file \"x.h\"\n\n"
        "3 errors detected in the compilation of \"/bascule/1.cu\".\n");
    REQUIRE(got.size() == 4);
    CHECK(got[0].severity == Diagnostic::Severity::error);
    CHECK(got[0].file == "/bascule/1.cu");
    CHECK(got[0].line == 3);
    CHECK(got[0].column == 1);
    CHECK(got[0].number.empty());
    CHECK(got[0].message == "expected a \";\"");
    CHECK(got[0].source_line == "int y;");
    CHECK(got[1].severity == Diagnostic::Severity::warning);
    CHECK(got[1].number == "177-D");
    CHECK(got[1].file == "inc/a(1).h");
    CHECK(got[1].line == 12);
    CHECK(got[1].column == 5);
    CHECK(is_at_end_of_text(got[2]));
    REQUIRE(got[2].notes.size() == 1);
    CHECK(got[2].notes[0].severity == Diagnostic::Severity::note);
    CHECK(got[2].notes[0].number == "3196-D");
    CHECK(got[2].notes[0].line == 2);
    CHECK(got[2].notes[0].message == "to match this \"{\"");
    CHECK(got[3].is_error());
    CHECK(got[3].message == "cannot open source file \"x.h\"");
}

TEST_CASE("a message about a name expression says which") {
    const std::vector<Diagnostic> got = parse_log(
        "__nv_name_map(2): error: identifier \"gone\" is undefined\n"
        "  #pragma nv_mangled_name bascule::signature<decltype(&gone)>\n        ^\n");
    REQUIRE(got.size() == 1);
    CHECK(concerns_name_expression(got[0]));
    CHECK(name_expression_of(got[0]) == "bascule::signature<decltype(&gone)>");
}

TEST_CASE("a log is shown at the user's places, and nothing of it is lost") {
    Source source = source_of("int x;");
    source.first_line = 5;
    const std::string canonical = canonical_name(source.text);
    const std::string log = canonical + "(2): warning #1-D: so\n  x\n  ^\n" +
                            "  detected during instantiation of \"f\" at line 3\n" +
                            "  detected during instantiation of \"g\" at line 4 of other.h\n" +
                            "ptxas info    : 0 bytes gmem\n1 error in \"" + canonical + "\".\n";
    CHECK(readable_log(log, source) ==
          "kernels.cu:6: warning #1-D: so\n  x\n  ^\n"
          "  detected during instantiation of \"f\" at line 7\n"
          "  detected during instantiation of \"g\" at line 4 of other.h\n"
          "ptxas info    : 0 bytes gmem\n1 error in \"kernels.cu\".\n");
}

TEST_CASE("a log without messages of a known form is shown whole") {
    const Source source = source_of("");
    CHECK(explain_failure({}, "ptxas fatal   : Unresolved extern function 'f'\n", source) ==
          "kernels.cu does not compile:\nptxas fatal   : Unresolved extern function 'f'");
}

TEST_CASE("the canonical name depends on the text alone") {
    CHECK(canonical_name("a") == canonical_name("a"));
    CHECK(canonical_name("a") != canonical_name("b"));
    CHECK(canonical_name("a").starts_with("/bascule/"));
    CHECK(canonical_name("a").size() == std::string("/bascule/.cu").size() + 32);
}

TEST_CASE("a log of any form is read without harm") {
    for (const char* log :
         {"", "\n", "(", "): ", "(1): ", "(1): error", "x(): error: y", "x(99999999999): error: y",
          "x(-1): error: y", "At end of source: ", "x(1): error:"}) {
        CAPTURE(std::string(log));
        const Source source = source_of("x");
        CHECK_NOTHROW(explain_failure(parse_log(log), log, source));
        CHECK_NOTHROW(readable_log(log, source));
    }
}

}  // namespace
}  // namespace bascule::testing
