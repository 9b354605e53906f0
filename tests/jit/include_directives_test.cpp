#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {
namespace {

bool names(const IncludeDirectives& directives, const std::string& name) {
    for (const Include& include : directives.includes) {
        if (include.name == name) return true;
    }
    return false;
}

TEST_CASE("an include is seen however it is written") {
    for (const char* text : {"#include \"a.h\"",
                             "#include <a.h>",
                             "  #  include \"a.h\"",
                             "#include\"a.h\"",
                             "/* # */ #include \"a.h\"",
                             "#if 0\n#include \"a.h\"\n#endif",
                             "#include \"a.h\" // why",
                             "int x;\r\n#include \"a.h\"\r\n",
                             "%:include <a.h>",
                             "#inc\\\nlude \"a.h\"",
                             "#\\\ninclude <a.h>",
                             "#include \\\n\"a.h\"",
                             "#include \"a.\\\nh\"",
                             "#/* */include/**/\"a.h\"",
                             "#include_next <a.h>",
                             "int a; /*\n*/ # include \"a.h\"",
                             "#inc\\ \nlude <a.h>",
                             "# /* over\nlines */ include <a.h>",
                             "\"unended\n#include <a.h>\n",
                             "'unended\n#include <a.h>\n",
                             "#error don't\n#include <a.h>\n"}) {
        CAPTURE(std::string(text));
        const IncludeDirectives found = include_directives(text);
        CHECK(names(found, "a.h"));
        CHECK_FALSE(found.computed);
    }
}

TEST_CASE("quotes, brackets and next are told apart") {
    const IncludeDirectives found =
        include_directives("#include \"a\"\n#include <b>\n#include_next <c>\n#if __has_include(<d>)\n");
    CHECK(found.includes == std::vector<Include>{{"a", true, false, false},
                                                 {"b", false, false, false},
                                                 {"c", false, true, false},
                                                 {"d", false, false, true}});
}

TEST_CASE("what only a preprocessor can know is computed") {
    for (const char* text :
         {"#include HEADER", "%:include HEADER", "#inc\\\nlude HEADER", "#include", "#include \"a.h\n",
          "/* */ #include NAME(x)", "#embed \"data\"", "#if __has_include(HEADER)",
          "#define X(a) __has_include(a)", "#if __has_\\\ninclude(HEADER)", "/* '\"' */ #include HEADER",
          "R\"x(  )x\" /* */\n#include HEADER", "'\"'\n#include HEADER\n\"",
          "1'000'000 //'\n#include HEADER"}) {
        CAPTURE(std::string(text));
        CHECK(include_directives(text).computed);
    }
}

TEST_CASE("words in comments and literals make nothing computed") {
    for (const char* text : {"/*\n#include HEADER\n*/", "// use #include to\n", "// # include it\n",
                             "#ifdef __has_include\n#endif",
                             "#if defined(__has_include) && __has_include(<a>)", "R\"(\n#include HEADER\n)\"",
                             "#define MY_HAS_INCLUDE(X) __has_include(X)\n#if MY_HAS_INCLUDE(<b>)\n",
                             "x = \"#include\";", "// __has_include(x) does\n"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(include_directives(text).computed);
    }
    CHECK(names(include_directives("#if MY_HAS_INCLUDE(<b>)\n"), "b"));
}

TEST_CASE("texts that tell the time are known") {
    CHECK(include_directives("const char* t = __TIME__;").has_time);
    CHECK_FALSE(include_directives("int time;").has_time);
}

TEST_CASE("a text takes linear time, whatever stands in it") {
    for (const std::string unit : {"#/*", "#include/*", "/*/", "__has_include(/*", "#\\\n", "R\"(", "\"",
                                   "\\ \n", "#include \"", "%:", "HAS_INCLUDE(x"}) {
        std::string text;
        while (text.size() < 4'000'000) text += unit;
        CAPTURE(unit);
        const auto start = std::chrono::steady_clock::now();
        include_directives(text);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // quadratic: hours
    }
}

}  // namespace
}  // namespace bascule
