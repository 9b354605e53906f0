// The symbols found in compiled code (CodeOutline), compared with NVRTC's reflection of the same text; and linking by
// nvJitLink.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bascule/jit/link/code.hpp>
#include <bascule/jit/link/linker.hpp>
#include <bascule/jit/link/nvjitlink.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr const char* kernels = R"(
struct Point { double x; float y; };
enum Color : unsigned char { red };
template <class T> struct identity { using type = T; };
namespace ns {
template <class T, int N> __global__ void many(T* a, const T* b, T c, int n) { if (n < N) *a = *b + c; }
template __global__ void many<float, 3>(float*, const float*, float, int);
template __global__ void many<long long, -1>(long long*, const long long*, long long, int);
}
__global__ void numbers(bool a, char b, signed char c, unsigned char d, short e, unsigned short f, int g,
                        unsigned h, long i, unsigned long j, long long k, unsigned long long l, float m, double n) {}
__global__ void vectors(float2 a, float3 b, float4 c, double2 d, char4 e, uchar3 f, longlong2 g, dim3 h) {}
__global__ void pointers(float* a, const double* b, void* c, const void* d, int** e, float4* f, Point* g) {}
__global__ void views(bascule::array_view<float> a, bascule::array_view<const double, 3> b,
                      bascule::masked_view<int, 2> c) {}
__global__ void classes(Point a, Color b, int c) {}
__global__ void overloaded(int a) {}
__global__ void overloaded(float* a) {}
)";

const Image& compiled(const char* arch) {
    static std::map<std::string, Image> images;
    if (const auto known = images.find(arch); known != images.end()) return known->second;
    Program asked = program(kernels);
    asked.arch = parse_arch(arch);
    asked.options.extra = {"-rdc=true"};
    for (const char* instance : {"ns::many<float, 3>", "ns::many<long long, -1>"})
        asked.instances.push_back({"ns::many", instance});
    asked.functions_too = true;
    return images[arch] = compiler().compile(asked);
}

const KernelImage* by_lowered_name(const std::vector<KernelImage>& all, const std::string& name) {
    const auto found = std::ranges::find(all, name, &KernelImage::lowered_name);
    return found == all.end() ? nullptr : &*found;
}

/// Checks that the signatures read from names and code are those that NVRTC reflects, except for parameters' names and
/// the sizes of classes that pointers point to.
void check_like_reflected(const Image& image, const Code& code) {
    const std::vector<KernelImage> read = kernels_of(outline_of(code));
    REQUIRE(read.size() == image.kernels.size());
    for (const KernelImage& expected : image.kernels) {
        INFO(expected.lowered_name);
        const KernelImage* kernel = by_lowered_name(read, expected.lowered_name);
        REQUIRE(kernel != nullptr);
        REQUIRE(kernel->signature.parameters.size() == expected.signature.parameters.size());
        CHECK(kernel->signature.bytes == expected.signature.bytes);
        for (std::size_t i = 0; i < expected.signature.parameters.size(); ++i) {
            const Parameter& got = kernel->signature.parameters[i];
            const Parameter& want = expected.signature.parameters[i];
            INFO(want.spelling);
            CHECK(got.spelling == want.spelling);
            CHECK(got.bytes == want.bytes);
            CHECK(got.offset == want.offset);
            const bool is_enumeration = want.spelling == "Color";
            CHECK((got.type.kind == want.type.kind || is_enumeration));
            if (want.type.element_kind == ParameterType::Element::structure || is_enumeration) continue;
            CHECK(got.type.dtype == want.type.dtype);
            CHECK(got.type.lanes == want.type.lanes);
            CHECK(got.type.constant == want.type.constant);
            CHECK(got.type.rank == want.type.rank);
            CHECK(got.type.character == want.type.character);
            if (takes_arrays(want.type)) CHECK(got.type.alignment == want.type.alignment);
            CHECK(got.plain == want.plain);
        }
    }
}

TEST_CASE("names and PTX tell of parameters what NVRTC reflects") {
    const Image& image = compiled("compute_80");
    check_like_reflected(image, {"kernels.ptx", image.ptx, CodeKind::ptx});
    CHECK(outline_of({"kernels.ptx", image.ptx, CodeKind::ptx}).arch == parse_arch("compute_80"));
}

TEST_CASE("names and a cubin tell of parameters what NVRTC reflects") {
    for (const char* arch : {"sm_80", "sm_90"}) {
        const Image& image = compiled(arch);
        const Code cubin{"kernels.cubin", image.cubin, CodeKind::cubin};
        check_like_reflected(image, cubin);
        CHECK(outline_of(cubin).arch == parse_arch(arch));
    }
}

TEST_CASE("kernels are called as C++ calls them, overloads with their parameters") {
    const Image& image = compiled("compute_80");
    std::vector<std::string> names;
    for (const KernelImage& kernel : image_of_code({"kernels.ptx", image.ptx, CodeKind::ptx}).kernels)
        names.push_back(kernel.name);
    for (const char* name : {"ns::many<float, 3>", "ns::many<long long, -1>", "numbers", "overloaded(int)",
                             "overloaded(float*)"}) {
        INFO(name);
        CHECK(std::ranges::count(names, name) == 1);
    }
}

TEST_CASE("a parameter of a type that the name does not tell is checked by its size") {
    const Image image = compile(R"(
        template <class T> struct identity { using type = T; };
        template <class T> __global__ void k(typename identity<T>::type a, T b) {}
        template __global__ void k<int>(int, int);
        extern "C" __global__ void plain(int* a, float b, int c, double d) {})");
    const std::vector<KernelImage> read = kernels_of(outline_of({"k.ptx", image.ptx, CodeKind::ptx}));
    REQUIRE(read.size() == 2);
    using Kind = ParameterType::Kind;
    for (const KernelImage& kernel : read) {
        const std::vector<Parameter>& parameters = kernel.signature.parameters;
        CHECK(parameters[0].type.kind == Kind::untyped);
        if (kernel.name != "plain") continue;
        CHECK(parameters[0].spelling == "8 bytes");
        CHECK(parameters[1].type.kind == Kind::scalar);
        CHECK(parameters[2].type.kind == Kind::untyped);
        CHECK(parameters[3].type.dtype == DType{DType::Kind::floating, 8});
    }
}

TEST_CASE("PTX by hand: comments, alignments, pointers, declarations in every order") {
    const std::string ptx = R"(// hand-made
/* .version 1.0 */ .version 8.0
.target sm_75, debug
.address_size 64
.file 1 "a { file.cu", 12, 34
.section .debug_str { info: .b8 1, 2 }
.extern .func (.param .b32 r) needed (.param .b32 x);
.extern .func unused;
.extern .shared .align 16 .b8 dynamic[];
.visible .func (.param .b32 r) later (.param .b32 x);
.visible .global .align 8 .v2 .f32 pairs[3][2] = {{1, 2}};
.const .u32 own = 5;
.weak .global .u64 address = generic(pairs);
.visible .entry k (.param .u64 .ptr .global .align 4 p, .param .align 16 .b8 s[24], .param .f64 d)
.maxntid 128, 1, 1
{ .reg .b32 %r<2>; { call (%r0), needed, (%r1); } ret; }
.visible .func (.param .b32 r) later (.param .b32 x) { ret; }
)";
    const CodeOutline outline = outline_of({"hand.ptx", ptx, CodeKind::ptx});
    using Linkage = CodeSymbol::Linkage;
    CHECK(outline.arch == parse_arch("compute_75"));
    REQUIRE(outline.find("needed") != nullptr);
    CHECK(outline.find("needed")->is_needed);
    CHECK_FALSE(outline.find("unused")->is_needed);
    CHECK(outline.find("dynamic") == nullptr);
    CHECK(outline.find("later")->linkage == Linkage::global);
    CHECK(outline.find("pairs")->bytes == 48);
    CHECK(outline.find("own")->linkage == Linkage::local);
    CHECK(outline.find("own")->is_constant);
    CHECK(outline.find("address")->linkage == Linkage::weak);
    const std::vector<KernelImage> read = kernels_of(outline);
    REQUIRE(read.size() == 1);
    const std::vector<Parameter>& parameters = read[0].signature.parameters;
    REQUIRE(parameters.size() == 3);
    CHECK(parameters[0].type.kind == ParameterType::Kind::pointer);
    CHECK(parameters[1].type.kind == ParameterType::Kind::structure);
    CHECK(parameters[1].offset == 16);
    CHECK(parameters[2].offset == 40);
    CHECK(kind_of_code(ptx) == CodeKind::ptx);
}

TEST_CASE("the stack is unknown of functions that call themselves, of calls through pointers and of alloca") {
    const auto function = [](std::string_view name, std::string_view body) {
        return fmt::format(
            ".func  (.param .b32 func_retval0) {}(\n\t.param .b32 a\n)\n{{\n\t.reg .b32 %r<3>;\n{}\tret;\n}}\n",
            name, body);
    };
    const auto call = [](std::string_view name) {
        return fmt::format(
            "\t{{ // callseq 0, 0\n\tcall.uni (retval0), \n\t{}, \n\t(\n\tparam0\n\t);\n\t}}\n", name);
    };
    const std::string kernel =
        ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a\n)\n;\n.visible .entry k()\n{\n" +
        call("f") + call("vprintf") + "\tret;\n}\n";
    CHECK_FALSE(has_unknown_stack(kernel));
    CHECK_FALSE(has_unknown_stack(kernel + function("f", "")));
    CHECK_FALSE(has_unknown_stack(kernel + function("f", call("g")) + function("g", call("vprintf"))));
    CHECK(has_unknown_stack(kernel + function("f", call("f"))));
    CHECK(has_unknown_stack(kernel + function("f", call("g")) + function("g", call("h")) +
                            function("h", call("f"))));
    CHECK_FALSE(has_unknown_stack(kernel + function("f", "// call.uni f,\n")));
    CHECK(has_unknown_stack(kernel + function("f", "\tprototype_2 : .callprototype (.param .b32 _) _;\n")));
    CHECK(has_unknown_stack(kernel + function("f", "\talloca.u64 %rd1, %rd2;\n")));
    CHECK_FALSE(has_unknown_stack(""));
    CHECK_FALSE(has_unknown_stack(".func f { call"));
}

TEST_CASE("a cubin that is cut or changed is an error and no more") {
    const Image& image = compiled("sm_80");
    const Code whole{"kernels.cubin", image.cubin, CodeKind::cubin};
    for (std::size_t length = 4; length < image.cubin.size(); length += 61)
        CHECK_THROWS_AS(outline_of({"cut", image.cubin.substr(0, length), CodeKind::cubin}), CompileError);
    for (std::size_t at = 16; at < image.cubin.size(); at += 37) {
        Code changed = whole;
        changed.bytes[at] = static_cast<char>(changed.bytes[at] ^ 0xFF);
        try {
            kernels_of(outline_of(changed));
        } catch (const CompileError&) {
        }
    }
}

// --- Linking

constexpr const char* caller = R"(
extern __device__ float table[4];
__device__ float twice(float);
static __device__ float bias = 3;
__global__ void apply(float* x) { *x = twice(*x) + table[1] + bias; })";
constexpr const char* callee = R"(
__device__ float table[4];
static __device__ float bias = 5;
__device__ float twice(float x) { return 2 * x + bias; })";

Code code_of(const char* name, const char* text, const char* arch) {
    Program asked = program(text);
    asked.arch = parse_arch(arch);
    asked.options.extra = {"-rdc=true"};
    asked.functions_too = true;
    const Image image = compiler().compile(asked);
    return asked.arch.is_virtual ? Code{name, image.ptx, CodeKind::ptx}
                                 : Code{name, image.cubin, CodeKind::cubin};
}

std::string link_error(std::vector<Code> codes) {
    return message_of<CompileError>([&] { check_symbols(codes); });
}

TEST_CASE("names that do not fit are told with their texts, of PTX and of machine code") {
    for (const char* arch : {"compute_80", "sm_80"}) {
        const std::string name = arch;
        INFO(name);
        const Code user = code_of("caller.cu", caller, arch), other = code_of("callee.cu", callee, arch);
        CHECK(link_error({user, other}) == "");
        CHECK(link_error({other, user}).empty());
        CHECK(contains(link_error({user}),
                       "is used in caller.cu, and none of the linked texts defines it (caller.cu)"));
        Code again = other;
        again.name = "again.cu";
        CHECK(contains(link_error({user, other, again}), "is defined in callee.cu and in again.cu"));
        const Code differs = code_of(
            "other.cu", "__device__ float table[4]; __device__ float twice(double) { return 1; }", arch);
        CHECK(contains(link_error({user, differs}),
                       "other.cu has function 'twice(double)': the declarations differ"));
    }
}

TEST_CASE("nvJitLink links machine code, PTX and both without a device") {
    const std::shared_ptr<const Linker> linker = find_nvjitlink(*compiler().nvrtc());
    if (linker == nullptr) {
        MESSAGE("no nvJitLink of this NVRTC's version");
        return;
    }
    // The linker must be as new as NVRTC, even if the loader's path has an older one.
    const std::string own = "nvJitLink " + to_string(compiler().nvrtc()->version());
    CHECK(linker->name() >= own);
    CompileOptions lined;
    lined.lineinfo = true;
    for (const char* first : {"sm_80", "compute_80"}) {
        for (const char* second : {"sm_80", "compute_80"}) {
            const LinkedImage made(
                {code_of("caller.cu", caller, first), code_of("callee.cu", callee, second)}, {}, lined,
                linker);
            const Image image = made.make(parse_arch("sm_80"));
            REQUIRE(image.kernels.size() == 1);
            CHECK(image.kernels[0].name == "apply");
            CHECK(image.ptx.empty());
            const CodeOutline outline = outline_of({"linked", image.cubin, CodeKind::cubin});
            for (const char* name : {"table", "_Z5twicef"}) {
                REQUIRE(outline.find(name) != nullptr);
                CHECK(outline.find(name)->linkage != CodeSymbol::Linkage::external);
            }
        }
    }
    const Code broken{"broken.ptx",
                      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }",
                      CodeKind::ptx};
    CHECK(contains(message_of<CompileError>([&] {
                       linker->link({&broken, 1}, parse_arch("sm_80"), {});
                   }),
                   "broken.ptx"));
    CHECK_THROWS_AS(linker->link({&broken, 1}, {1, 2, '\0', false}, {}), CompileError);
}

TEST_CASE("what a linker brings itself is not missing") {
    const std::shared_ptr<const Linker> linker = find_nvjitlink(*compiler().nvrtc());
    if (linker == nullptr) {
        MESSAGE("no nvJitLink of this NVRTC's version");
        return;
    }
    const char* views = R"(
        __device__ float twice(float);
        __global__ void apply(bascule::array_view<float> x) {
            for (auto i : bascule::grid_stride(x.size())) x[i] = twice(x[i]);
            printf("%f", x[0]);
            free(malloc(3));
            assert(x[0] > 0);
        })";
    const LinkedImage made(
        {code_of("views.cu", views, "sm_90"),
         code_of("callee.cu", "__device__ float twice(float x) { return 2 * x; }", "sm_90")},
        {}, {}, linker);
    CHECK(made.make(parse_arch("sm_90")).kernels.size() == 1);
}

TEST_CASE("the key of a link is what is linked, in order, and how") {
    const std::shared_ptr<const Linker> linker = find_nvjitlink(*compiler().nvrtc());
    if (linker == nullptr) {
        MESSAGE("no nvJitLink of this NVRTC's version");
        return;
    }
    const Code a{"a", "1", CodeKind::ptx}, b{"b", "2", CodeKind::ptx};
    const auto key = [&](std::vector<Code> codes, const CompileOptions& options = {}) {
        return LinkedImage(std::move(codes), {}, options, linker).key();
    };
    CHECK(key({a, b}) == key({{"other name", "1", CodeKind::ptx}, b}));
    CHECK(key({a, b}) != key({b, a}));
    CHECK(key({a, b}) != key({a}));
    CompileOptions lined;
    lined.lineinfo = true;
    CHECK(key({a, b}) != key({a, b}, lined));
    CHECK(key({a}) != key({{"a", "1", CodeKind::cubin}}));
}

}  // namespace
}  // namespace bascule::testing
