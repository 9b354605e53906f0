#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/headers/computed_include.hpp>
#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/headers/pasted_words.hpp>

namespace bascule {
namespace {

bool names(const IncludeDirectives& directives, const std::string& name) {
    for (const Include& include : directives.includes) {
        if (include.name == name) return true;
    }
    return false;
}

/// True if the text alone proves what a compile of it reads.
bool is_plain(const std::string& text) {
    const IncludeDirectives found = include_directives(text);
    const bool can_paste = found.pastes && can_paste_probe(found.fragments);
    return found.computed.empty() && !found.wraps_probe && !found.doubtful && !can_paste;
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
                             "#error don't\n#include <a.h>\n",
                             "\xEF\xBB\xBF#include <a.h>\n",
                             "#if 0\ndon't /*\n#endif\n#include <a.h>\n//*/\n",
                             "#define S \"x\"R\"(\n#include <a.h>\n//)\"\n"}) {
        CAPTURE(std::string(text));
        CHECK(names(include_directives(text), "a.h"));
        CHECK(is_plain(text));
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
          "/* */ #include NAME(x)", "/* '\"' */ #include HEADER", "R\"x(  )x\" /* */\n#include HEADER",
          "'\"'\n#include HEADER\n\"", "1'000'000 //'\n#include HEADER", "#include <a//b>",
          "#include \"a\\b\"", "#include \"\""}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(include_directives(text).computed.empty());
    }
}

TEST_CASE("a computed include is seen where compilers disagree on what hides it") {
    for (const char* text :
         {"#if 0\ndon't /*\n#endif\n#include HEADER\n//*/\n",
          "#if 0\nsay \"t /*\n#endif\n#include HEADER\n//*/\n",
          "#define S \"x\"R\"(\n#include HEADER\n//)\"\n", "#define S $R\"(\n#include HEADER\n//)\"\n",
          "#define S \xC3\xA9R\"(\n#include HEADER\n//)\"\n",
          "#define S R\"(\n)\\\n\" )\"\n#include HEADER\n", "// \\ \n#include HEADER\n",
          "/* unended\n#include HEADER\n"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(include_directives(text).computed.empty());
    }
}

TEST_CASE("a probe is plain directly in an #if, with a literal name, and doubtful otherwise") {
    for (const char* text : {"#if __has_include(<a>)", "#elif __has_include ( \"a\" )",
                             "#if (X && !__has_include(/* */ <a>)) || Y(1)", "#if X(__has_include(\"a\"))",
                             "#if \\\n__has_include(<a>)"}) {
        CAPTURE(std::string(text));
        CHECK(names(include_directives(text), "a"));
        CHECK(is_plain(text));
    }
    for (const char* text :
         {"#define HAS __has_include", "#define Q MY_HAS_INCLUDE",
          "#define MY_HAS_INCLUDE __has_include(OPT)", "#define MY_HAS_INCLUDE(X) __has_include(X)",
          "#if MY_HAS_INCLUDE(<a>)", "#if __has_include(OPT)", "#if X(__has_include(<a>))",
          "#if X(1)(__has_include(<a>))", "#if X(__has_include, <a>)", "int x = __has_include(<a>);",
          "#define X __has_include(<a>)", "#if __has_include(\"a\" \"b\")", "#if __has_include \"a\"",
          "#if __has_include(<a//b>)", "#if __has_embed(\"a\")", "#if __has_\\\ninclude(HEADER)",
          "#if 0\ndon't\n#endif\n// __has_include(X)\n"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(is_plain(text));
    }
}

TEST_CASE("words that ## can join to a probe are doubtful, in whatever parts") {
    for (const char* text :
         {"#define CAT(a, b) a##b\n#if CAT(__has_, include)(\"o.h\")",
          "#define CAT(a, b) a%:%:b\n#if CAT(__has, _include)(\"o.h\")",
          "#define CAT(a, b) a##b\nCAT(__TI, ME__)", "#define CAT(a, b, c) a## b##c\nCAT(_, _, DA TE__)"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(is_plain(text));
    }
    CHECK(is_plain("#define CAT(a, b) a##b\nint CAT(x_, include);"));
    // These macros join a word of their own that is no part of a probe's name, so their results are no probes.
    const std::string all = "\nint __has_, include, __, has_, _;\n";
    for (const char* macro :
         {"#define K(T) k_##T##_q(T* x)", "#define K(a, ...) f(a, ##__VA_ARGS__, #a) g_ ## a",
          "#define K() q ## y", "#define K q##include", "#define K(a)/* */1##a"}) {
        CAPTURE(std::string(macro));
        CHECK(is_plain(macro + all));
    }
    for (const char* macro :
         {"#define K(x, y) x##y", "#define K(x) x##include", "#define K __has_ ## include",
          "#define K(x, y) q##x##y", "/*\n#define A */\n#define K(x, y) x##y",
          "#define K(x, y) /*\n#define A */ x##y", "#define K(x, y...) x##y",
          "#define K(...) __VA_ARGS__##include", "%:define K(x, y) x%:%:y", "x##y"}) {
        CAPTURE(std::string(macro));
        CHECK_FALSE(is_plain(macro + all));
    }
    CHECK(is_plain("__has_ include __TI ME__"));
    CHECK(is_plain("#define CAT(a, b) a##b\n#if __has_include(<a>)\n"));
    CHECK(can_paste_probe({"__ha", "s_incl", "ude"}));
    CHECK_FALSE(can_paste_probe({"__ha", "incl", "ude"}));
    CHECK_FALSE(can_paste_probe({}));
}

/// True if ## may make a probe of the words that the text's macros get as arguments or contain themselves.
bool may_paste_probe(const std::string& text) {
    const IncludeDirectives found = include_directives(text);
    PastingMacros macros;
    std::set<std::string> fragments;
    for (const MacroDefinition& each : found.definitions) {
        macros.add(each);
        fragments.merge(fragments_of(each));
    }
    if (!macros.close()) return true;
    std::optional<std::set<std::string>> pasted = pasted_fragments(text, macros);
    if (pasted) fragments.merge(*pasted);
    return !pasted || can_paste_probe(fragments);
}

TEST_CASE("only what macros are called with can be joined") {
    const std::string cat =
        "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n#define ID(x) x\n#define NO(x) 1\n";
    const std::string all = "template <class T> int f(T _, int h, int a) { return include(__has_, _, h); }\n";
    for (const char* text :
         {"", "int x = CAT(x_, include);", "NO(__has_ + include)", "#if NO(include) && __has_\n#endif\n",
          "CAT(x, y)\n(__has_, include)", "#undef CAT\n", "#ifdef CAT\n(__has_, include)\n#endif\n",
          "#define USER(T) CAT(x, T)\nUSER(include) __has_",
          "\"CAT(__has_, include)\" // CAT(__has_, include)"}) {
        CAPTURE(std::string(text));
        CHECK((std::string(text) == "CAT(x, y)\n(__has_, include)") == may_paste_probe(cat + all + text));
    }
    for (const char* text : {"#if CAT(__has_, include)(\"o.h\")\n#endif",
                             "CAT (\n__has_, include)",
                             "CAT/**/(__has_, include)",
                             "ID(CAT)(__has_, include)",
                             "ID(CAT LP __has_, include)",
                             "NO(CAT(__has_, include))",
                             "#define C CAT\nC(__has_, include)",
                             "#define H __has_\n CAT(H, include)",
                             "#define L CAT(__has_,\nL include)",
                             "#define L(x) CAT(x,\nL(__has_) include)",
                             "CAT(__has_,\n#if 1\ninclude)\n#endif",
                             "CAT\n#if 1\n(__has_, include)\n#endif",
                             "CAT(__has_,",
                             "CAT",
                             "#define J(x) x##T\nJ(CA)(__has_, include)",
                             "#define W(x, y) CAT(x, y)\nW(__has_, include)",
                             "don't CAT(__has_, include)",
                             "#define M CAT(__has_, include)\n#if M(<a>)",
                             "NV_IF_TARGET(NV_IS_DEVICE, (__has_ include))",
                             "CAT(__TI, ME__)"}) {
        CAPTURE(std::string(text));
        CHECK(may_paste_probe(cat + text));
    }
}

TEST_CASE("words in comments and literals make nothing doubtful") {
    for (const char* text :
         {"/*\n#include HEADER\n*/", "// use #include to\n", "// # include it\n",
          "#ifdef __has_include\n#endif", "#ifndef __has_include\n#endif",
          "#if defined(__has_include) && __has_include(<a>)", "#if defined __has_include\n#endif",
          "R\"(\n#include HEADER\n)\"", "#ifndef __has_include\n#define __has_include(x) 0\n#endif\n",
          "x = \"#include\";", "// __has_include(x) does\n", "int time; // __TIME__\n",
          "\"__has_include(x)\" '\\''", "#endif // __has_include(<a>)\n"}) {
        CAPTURE(std::string(text));
        CHECK(is_plain(text));
    }
}

TEST_CASE("a macro that stands for a probe is told from other doubts, because CCCL has one") {
    for (const char* text : {"#define X_HAS_INCLUDE(x) __has_include(x)\n", "#if X_HAS_INCLUDE(<b>)\n",
                             "#if X(__has_include(<b>))\n"}) {
        CAPTURE(std::string(text));
        CHECK(include_directives(text).wraps_probe);
        CHECK_FALSE(include_directives(text).doubtful);
    }
    CHECK(names(include_directives("#if X_HAS_INCLUDE(<b>)\n"), "b"));
}

TEST_CASE("texts that tell the time are doubtful, and so are those whose ends compilers see elsewhere") {
    for (const std::string& text :
         {std::string("const char* t = __TIME__;"), std::string("__DATE__"), std::string("__TIMESTAMP__"),
          std::string("// a\r#include HEADER"), std::string("// a\0 b", 7)}) {
        CAPTURE(text);
        CHECK(include_directives(text).doubtful);
    }
    CHECK(is_plain("int time, __TIME;"));
}

TEST_CASE("what a text defines is known") {
    CHECK(include_directives("#define A 1\n# undef B\n#define C(x) <x>/* \n */ y // z\n// #define D\n")
              .definitions == std::vector<MacroDefinition>{{"A", " 1"}, {"C", "(x) <x>/* \n */ y // z"}});
}

/// The headers that `#include DIRECTIVE` may name after these macro definitions, with their quotes or brackets.
std::optional<std::set<std::string>> named_by(const std::string& directive, const std::string& defined) {
    const IncludeDirectives found = include_directives(defined + "\n#include " + directive);
    REQUIRE(found.computed.size() == 1);
    MacroDefinitions definitions;
    for (const MacroDefinition& each : found.definitions) definitions[each.name].push_back(each.rest);
    const auto named = headers_named_by(found.computed.front(), definitions);
    if (!named) return std::nullopt;
    std::set<std::string> names;
    for (const Include& each : *named)
        names.insert(each.quoted ? '"' + each.name + '"' : '<' + each.name + '>');
    return names;
}

TEST_CASE("a computed include may name what any definition of its macros makes of it") {
    using Names = std::set<std::string>;
    CHECK(named_by("H", "#define H <a.h>") == Names{"<a.h>"});
    CHECK(named_by("H", "#define H \"d/a.h\" // why") == Names{"\"d/a.h\""});
    CHECK(named_by("H", "#define H <a.h>\n#undef H\n#define H\\\n<b.h>") == Names{"<a.h>", "<b.h>"});
    CHECK(named_by("STD(utility)", "#define STD(header) <cuda/std/header>") == Names{"<cuda/std/utility>"});
    CHECK(named_by("STD( x.h )", "#define STD(h) /* why */ <d/h>\n#define x y\n#define y z") ==
          Names{"<d/x.h>", "<d/y.h>", "<d/z.h>"});
    CHECK(named_by("H", "#define ROOT a/VERSION\n#define VERSION v2\n#define H <ROOT/x.h>") ==
          Names{"<ROOT/x.h>", "<a/VERSION/x.h>", "<a/v2/x.h>"});
    CHECK(named_by("STR(a.h)", "#define STR_(x) #x\n#define STR(x) STR_(x)") == Names{"\"a.h\""});
    CHECK(named_by("STR_(V)", "#define STR_(x) #x\n#define V a.h") == Names{"\"V\""});
    CHECK(named_by("STR(V)", "#define STR_(x) #x\n#define STR(x) STR_(x)\n#define V a.h") ==
          Names{"\"V\"", "\"a.h\""});
    CHECK(named_by("H(3)", "#define H(n) <a_##n##b.h>") == Names{"<a_3b.h>"});
    CHECK(named_by("PICK(F)(x)", "#define PICK(f) f\n#define F(x) <d/x>") == Names{"<d/x>"});
    CHECK(named_by("SECOND((a, b), <c>)", "#define SECOND(a, b) b") == Names{"<c>"});
    CHECK(named_by("A", "#define A B\n#define B A") == Names{});
    CHECK(named_by("nothing", "") == Names{});
    CHECK(named_by("F", "#define F(x) <x>") == Names{});
}

TEST_CASE("a computed include that is not understood is doubtful") {
    const std::string doubling = [] {
        std::string text = "#define A0 x\n";
        for (int i = 1; i < 40; ++i)
            text += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + "A" +
                    std::to_string(i - 1) + "\n#define A" + std::to_string(i) + " A" + std::to_string(i - 1) +
                    " A" + std::to_string(i - 1) + "\n";
        return text;
    }();
    for (const auto& each : std::vector<std::pair<std::string, std::string>>{
             {"__FILE__", ""},
             {"STR(__CUDA_ARCH__)", "#define STR_(x) #x\n#define STR(x) STR_(x)"},
             {"STD(__x)", "#define STD(x) <x>"},
             {"H", "#define H < a.h >"},
             {"H", "#define H \"a.h\" \"b.h\""},
             {"H", "#define H \"a\\b.h\""},
             {"H", "#define H <it's.h>"},
             {"H", "#define H L\"a.h\""},
             {"H", "#define H <a.h> b"},
             {"H", "#define H <a\xC3\xA9.h>"},
             {"H", "#define H <a$.h>"},
             {"H(a)", "#define H(...) <__VA_ARGS__>"},
             {"H(a, b)", "#define H(x) <x>"},
             {"H(a", "#define H(x) <x>"},
             {"STR(a b)", "#define STR(x) #x"},
             {"CAT(,a)", "#define CAT(x, y) x##y"},
             {"CAT(<, a.h>)", "#define CAT(x, y) x##y"},
             {"3", ""},
             {"A39", doubling}}) {
        const std::string& directive = each.first;
        const std::string& defined = each.second;
        CAPTURE(directive);
        CAPTURE(defined);
        CHECK_FALSE(named_by(directive, defined));
    }
}

TEST_CASE("a text takes linear time, whatever stands in it") {
    for (const std::string unit : {"#/*",
                                   "#include/*",
                                   "/*/",
                                   "__has_include(/*",
                                   "#\\\n",
                                   "R\"(",
                                   "\"",
                                   "\\ \n",
                                   "#include \"",
                                   "%:",
                                   "HAS_INCLUDE(x",
                                   "#if __has_include(",
                                   "#if (((",
                                   "#if x__has_include ",
                                   "#define has_include(",
                                   "*/#define x /*",
                                   "/*\n*/#define x /*\n*/",
                                   "*/#define has_include /*",
                                   "*/#if x /*",
                                   "*/#if __has_include(<x>) /*",
                                   "*/#include x /*",
                                   "*/#include <x> /*"}) {
        std::string text;
        while (text.size() < 1'000'000) text += unit;
        CAPTURE(unit);
        const auto start = std::chrono::steady_clock::now();
        include_directives(text);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));  // if quadratic: minutes
    }
}

}  // namespace
}  // namespace bascule
