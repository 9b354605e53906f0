// Ways of including a header that only a preprocessor can follow: the cache must return the code of a new compile.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/lookup/cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// `lines` are put before a program's text and include o.h in some way if it exists. o.h defines OPTION.
struct Form {
    std::string name, lines;
    std::string header;  ///< the content of odd.h, if the lines include that
};

std::string probe(const std::string& condition) {
    return "#if " + condition + "\n#include \"o.h\"\n#endif\n";
}

const std::vector<Form>& forms() {
    static const std::vector<Form> forms = {
        {"include", "#include \"o.h\"\n", ""},
        {"probe", probe("__has_include(\"o.h\")"), ""},
        {"probe in brackets", probe("__has_include(<o.h>)"), ""},
        {"an alias", "#define HAS __has_include\n" + probe("HAS(\"o.h\")"), ""},
        {"an alias of a macro",
         "#define MY_HAS_INCLUDE(x) __has_include(x)\n#define Q MY_HAS_INCLUDE\n" + probe("Q(\"o.h\")"), ""},
        {"an object",
         "#define OPT \"o.h\"\n#define MY_HAS_INCLUDE __has_include(OPT)\n" + probe("MY_HAS_INCLUDE"), ""},
        {"pasted", "#define CAT(a, b) a##b\n" + probe("CAT(__has_, include)(\"o.h\")"), ""},
        {"pasted by digraphs", "#define CAT(a, b) a%:%:b\n" + probe("CAT(__has_, include)(\"o.h\")"), ""},
        {"in arguments",
         "#define o opt\n#define ID(x) x\n#if ID(__has_include(<o.h>))\n#define OPTION 3\n#endif\n", ""},
        {"an apostrophe in removed text",
         "#define H \"o.h\"\n#if 0\ndon't /*\n#endif\n" + probe("__has_include(H)") + "//*/\n", ""},
        {"an apostrophe in removed text of a header", "#define H \"n.h\"\n#include \"odd.h\"\n",
         "#if 0\ndon't /*\n#endif\n#include H\n//*/\n"},
        {"a raw string behind a literal",
         "#define H \"o.h\"\n#define S \"x\"R\"(\n" + probe("__has_include(H)") + "//)\"\n", ""},
        {"a spliced comment", "#define H \"o.h\"\n// \\ \n#if __has_include(H)\n#include H\n#endif\n", ""},
        {"a computed name in a header", "#define H \"n.h\"\n#include \"odd.h\"\n", "#include H\n"},
        {"a wrapper in a header", "#include \"odd.h\"\n" + probe("HAS(\"o.h\")"),
         "#define HAS(x) __has_include(x)\n"},
        {"half a word in a header", "#include \"odd.h\"\n" + probe("CAT(HALF, include)(\"o.h\")"),
         "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n#define HALF __has_\n"},
    };
    return forms;
}

TEST_CASE("no form of a text gets old code, from memory or from disk") {
    for (const Form& form : forms()) {
        CAPTURE(form.name);
        const TemporaryDirectory headers, images;
        if (!form.header.empty()) headers.write("odd.h", form.header);
        headers.write("n.h", "#if __has_include(\"o.h\")\n#include \"o.h\"\n#endif\n");
        if (form.name == "include") headers.write("o.h", "");
        Program one = program(form.lines +
                              "#ifndef OPTION\n#define OPTION 0\n#endif\n"
                              "extern \"C\" __global__ void k(int* p) { *p = OPTION; }\n");
        one.options.include_paths = {headers.path()};
        Cache cache(toolkit(), images.path());
        const auto check = [&](const char* when) {
            CAPTURE(std::string(when));
            const std::string expected = compiler().compile(one).ptx;
            CHECK(cache.image(one).image->ptx == expected);
            Cache another(toolkit(), images.path());
            CHECK(another.image(one).image->ptx == expected);
        };
        check("without the header");
        headers.write("o.h", "#define OPTION 1\n");
        headers.write("opt.h", "");
        check("when it has appeared");
        headers.write("o.h", "#define OPTION 2\n");
        check("when it has changed");
        std::filesystem::remove(headers.path() + "/opt.h");
        check("when its neighbour is gone");
    }
}

TEST_CASE("a pasted __TIME__ is compiled each time") {
    Cache cache(toolkit());
    const Program one = program(
        "#define CAT(a, b) a##b\n__device__ const char* time = CAT(__TI, ME__);\n"
        "__global__ void k(const char** p) { *p = time; }\n");
    CHECK(cache.image(one).origin == Origin::compiled);
    CHECK(cache.image(one).origin == Origin::compiled);
}

}  // namespace
}  // namespace bascule::testing
