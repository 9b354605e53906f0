// Help for common mistakes: NVRTC compiles each text, as people write it, and its fix.
#include <string>

#include <doctest/doctest.h>

#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/options/compile_options.hpp>
#include <bascule/jit/options/option_table.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

struct Mistake {
    const char* text;
    const char* help;   ///< a part of the line of help
    const char* cured;  ///< the text after following the help; null if the test does not compile it
};

const Mistake mistakes[] = {
    // Headers.
    {"#include <cub/nothing.cuh>\n__global__ void f() {}", "pip install nvidia-cuda-cccl", nullptr},
    {"#include <curand_kernel_.h>\n__global__ void f() {}", "pip install nvidia-curand", nullptr},
    {"#include <cufftdx.hpp>\n__global__ void f() {}", "pip install nvidia-mathdx", nullptr},
    {"#include <regex>\n__global__ void f() {}", "#ifndef __CUDACC_RTC__",
     "#ifndef __CUDACC_RTC__\n#include <regex>\n#endif\n__global__ void f() {}"},
    {"#include \"mine.h\"\n__global__ void f() {}", "include_paths", nullptr},
    // Types that need a header.
    {"__global__ void f(__half* x) { x[0] = 1; }", "#include <cuda_fp16.h>",
     "#include <cuda_fp16.h>\n__global__ void f(__half* x) { x[0] = 1; }"},
    {"__global__ void f(half2* x) {}", "#include <cuda_fp16.h>",
     "#include <cuda_fp16.h>\n__global__ void f(half2* x) {}"},
    {"__global__ void f(float* x) { x[0] = __half2float(x[1]); }", "#include <cuda_fp16.h>", nullptr},
    {"__global__ void f(__nv_bfloat16* x) {}", "#include <cuda_bf16.h>",
     "#include <cuda_bf16.h>\n__global__ void f(__nv_bfloat16* x) {}"},
    {"__global__ void f(__nv_fp8_e4m3* x) {}", "#include <cuda_fp8.h>",
     "#include <cuda_fp8.h>\n__global__ void f(__nv_fp8_e4m3* x) {}"},
    {"__global__ void f(cuFloatComplex* x) {}", "#include <cuComplex.h>",
     "#include <cuComplex.h>\n__global__ void f(cuFloatComplex* x) {}"},
    {"__global__ void f(int64_t* x) {}", "#include <cstdint>",
     "#include <cstdint>\n__global__ void f(int64_t* x) {}"},
    {"__global__ void f(double* x) { x[0] = M_PI; }", "<cmath>",
     "#include <cmath>\n__global__ void f(double* x) { x[0] = M_PI; }"},
    {"__global__ void f(float* x) { x[0] = INFINITY; }", "<cmath>",
     "#include <cmath>\n__global__ void f(float* x) { x[0] = INFINITY; }"},
    {"__global__ void f(int* x) { x[0] = INT_MAX; }", "<climits>",
     "#include <climits>\n__global__ void f(int* x) { x[0] = INT_MAX; }"},
    {"__global__ void f(float* x) { x[0] = FLT_MAX; }", "<cfloat>",
     "#include <cfloat>\n__global__ void f(float* x) { x[0] = FLT_MAX; }"},
    // NumPy's and OpenCL's names.
    {"__global__ void f(float32* x) {}", "in C++ it is float.", "__global__ void f(float* x) {}"},
    {"__global__ void f(int64 n) {}", "long long", "__global__ void f(long long n) {}"},
    {"__global__ void f(uint n) {}", "in C++ it is unsigned.", "__global__ void f(unsigned n) {}"},
    // std and cuda::std: headers that include little come first, because the fixes are compiled as one text.
    {"__global__ void f(int* x) { x[0] = std::min(1, 2); }", "write min(...)",
     "__global__ void f(int* x) { x[0] = min(1, 2); }"},
    {"__global__ void f(float* x) { x[0] = std::sqrt(x[0]); }", "write sqrt(...)",
     "__global__ void f(float* x) { x[0] = sqrt(x[0]); }"},
    {"__global__ void f(std::uint32_t* x) {}", "<cuda/std/cstdint> and write cuda::std::uint32_t",
     "#include <cuda/std/cstdint>\n__global__ void f(cuda::std::uint32_t* x) {}"},
    {"__global__ void f(int* x) { x[0] = std::is_same<int, int>::value; }", "<cuda/std/type_traits>",
     "#include <cuda/std/type_traits>\n__global__ void f(int* x) { x[0] = cuda::std::is_same<int, "
     "int>::value; }"},
    {"__global__ void f(int* x) { cuda::std::tuple<int> t; }", "#include <cuda/std/tuple>",
     "#include <cuda/std/tuple>\n__global__ void f(int* x) { cuda::std::tuple<int> t; }"},
    {"__global__ void f(int* x) { std::array<int, 3> a; x[0] = a.size(); }",
     "<cuda/std/array> and write cuda::std::array",
     "#include <cuda/std/array>\n__global__ void f(int* x) { cuda::std::array<int, 3> a; x[0] = a.size(); }"},
    {"#include <variant>\n__global__ void f() {}", "#include <cuda/std/variant>",
     "#include <cuda/std/variant>\n__global__ void f() {}"},
    {"#include <cuda/std/array>\n__global__ void f(int* x) { cuda::std::tuple<int> t; }",
     "#include <cuda/std/tuple>",
     "#include <cuda/std/array>\n#include <cuda/std/tuple>\n"
     "__global__ void f(int* x) { cuda::std::tuple<int> t; }"},
    {"__global__ void f(complex64* x) {}", "<cuda/std/complex>",
     "#include <cuda/std/complex>\n__global__ void f(cuda::std::complex<float>* x) {}"},
    {"__global__ void f(int* x) { std::vector<int> v; }",
     "kernels have no std::vector: take the elements as bascule::array_view<T>", nullptr},
    {"__global__ void f(int* x) { std::cout << 1; }", "kernels have no std::cout: use printf.", nullptr},
    {"__global__ void f(int* x) { cuda::atomic_ref<int> r(*x); }", "#include <cuda/atomic>",
     "#include <cuda/atomic>\n__global__ void f(int* x) { cuda::atomic_ref<int> r(*x); }"},
    {"__global__ void f() { cooperative_groups::this_thread_block().sync(); }",
     "#include <cooperative_groups.h>",
     "#include <cooperative_groups.h>\n__global__ void f() { cooperative_groups::this_thread_block().sync(); "
     "}"},
    {"__global__ void f() { cg::this_thread_block().sync(); }", "namespace cg = cooperative_groups;",
     "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
     "__global__ void f() { cg::this_thread_block().sync(); }"},
    {"__global__ void f() { nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> a; }",
     "<mma.h>",
     "#include <mma.h>\n__global__ void f() { nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, "
     "float> a; }"},
    // Misspelt.
    {"__global__ void f() { __syncthread(); }", "did you mean __syncthreads?",
     "__global__ void f() { __syncthreads(); }"},
    {"__global__ void f() { syncthreads(); }", "did you mean __syncthreads?", nullptr},
    {"__global__ void f(int* x) { x[threadidx.x] = 0; }", "did you mean threadIdx?",
     "__global__ void f(int* x) { x[threadIdx.x] = 0; }"},
    {"__global__ void f(int* x) { x[threadId.x] = 0; }", "did you mean threadIdx?", nullptr},
    {"__global__ void f(int* x) { atomicadd(x, 1); }", "did you mean atomicAdd?",
     "__global__ void f(int* x) { atomicAdd(x, 1); }"},
    {"__global__ void f() { print(\"x\"); }", "did you mean printf?",
     "__global__ void f() { printf(\"x\"); }"},
    {"__global__ void f(int* values) { valeus[0] = 1; }", "did you mean values?",
     "__global__ void f(int* values) { values[0] = 1; }"},
    {"__global__ void f(int* x) { x[threadIdx.X] = 0; }", ".x, .y and .z", nullptr},
    {"__global__ void f(int* x) { x[blockDim.X] = 0; }", ".x, .y and .z", nullptr},
    {"__global__ void f(array_view<float> x) {}", "bascule::array_view",
     "__global__ void f(bascule::array_view<float> x) {}"},
    {"__global__ void f(bascule::array_vew<float> x) {}", "did you mean bascule::array_view?", nullptr},
    {"global void f(int* x) {}\n__global__ void g() {}", "__global__, with two underscores",
     "__global__ void f(int* x) {}\n__global__ void g() {}"},
    {"device int g() { return 1; }\n__global__ void f() {}", "__device__, with two underscores", nullptr},
    {"__global__ void f(int* x) { if (True) x[0] = 1; }", "in C++ it is true", nullptr},
    {"__global__ void f(int* x) { if (x == None) x[0] = 1; }", "in C++ it is nullptr", nullptr},
    // Host and device.
    {"int g(int a) { return a; }\n__global__ void f(int* x) { x[0] = g(1); }", "`__device__`",
     "__device__ int g(int a) { return a; }\n__global__ void f(int* x) { x[0] = g(1); }"},
    {"__host__ int g() { return blockDim.x; }\n__global__ void f() {}", "device code only",
     "__device__ int g() { return blockDim.x; }\n__global__ void f() {}"},
    {"int g() { return 3; }\n__global__ void f(int* x) { x[0] = g(); }", "`__device__`",
     "__device__ int g() { return 3; }\n__global__ void f(int* x) { x[0] = g(); }"},
    {"int main() { return 0; }\n__global__ void f() {}", "put main() and launchers between",
     "#ifndef __CUDACC_RTC__\nint main() { return 0; }\n#endif\n__global__ void f() {}"},
    {"int n = 3;\n__global__ void f(int* x) { x[0] = n; }", "`constexpr`",
     "constexpr int n = 3;\n__global__ void f(int* x) { x[0] = n; }"},
    {"__global__ int f(int* x) { return 1; }", "returns nothing", nullptr},
    {"__global__ void g() {}\n__global__ void f() { g<<<1, 1>>>(); }", "launch both from the host", nullptr},
    {"__global__ void f(int* x) { cudaMalloc(&x, 3); }", "allocate in the program that launches", nullptr},
    {"__global__ void f() { cudaDeviceSynchronize(); }", "__syncthreads()", nullptr},
    {"__global__ void f(int* x) { auto g = [] __device__(int a) { return a; }; x[0] = g(1); }",
     "remove the annotation", "__global__ void f(int* x) { auto g = [](int a) { return a; }; x[0] = g(1); }"},
    // Shared memory.
    {"__global__ void f(int* x) { __shared__ int s[]; x[0] = s[3]; }", "extern __shared__",
     "__global__ void f(int* x) { extern __shared__ int s[]; x[0] = s[3]; }"},
    {"__global__ void f(int* x, int n) { __shared__ int s[n]; x[0] = s[3]; }", "shared_bytes",
     "__global__ void f(int* x, int n) { extern __shared__ int s[]; x[0] = s[3]; }"},
    {"__global__ void f(int* x) { __shared__ int s = 3; x[0] = s; }", "by one thread",
     "__global__ void f(int* x) { __shared__ int s; if (threadIdx.x == 0) s = 3; __syncthreads(); x[0] = s; "
     "}"},
    // Language.
    {"__global__ void f(const float* x) { x[0] = 1; }", "without const",
     "__global__ void f(float* x) { x[0] = 1; }"},
    {"__global__ void f(int* x) { int i = blockIdx * blockDim + threadIdx; }", "blockIdx.x * blockDim.x",
     "__global__ void f(int* x) { int i = blockIdx.x * blockDim.x + threadIdx.x; }"},
    {"__global__ void f(float* x) { x[0] = x.size(); }", "bascule::array_view<T>",
     "__global__ void f(bascule::array_view<float> x) { x[0] = x.size(); }"},
    {"__global__ void f(int* x) { x[0] = __shfl_down(x[0], 1); }", "__shfl_down_sync(0xffffffff",
     "__global__ void f(int* x) { x[0] = __shfl_down_sync(0xffffffff, x[0], 1); }"},
    {"__global__ void f(int* x) {\n    int i = 3\n    x[0] = i;\n}", "without `;`",
     "__global__ void f(int* x) {\n    int i = 3;\n    x[0] = i;\n}"},
    {"__global__ void f(int n) {\n    printf(\"n is %d\n\", n);\n}", "write r before the text",
     "__global__ void f(int n) {\n    printf(\"n is %d\\n\", n);\n}"},
    {"__global__ void f(int n) {\n    printf(\"n is %d, n);\n}", "ends without a quote",
     "__global__ void f(int n) {\n    printf(\"n is %d\", n);\n}"},
    {"template <class T> concept C = true;\n__global__ void f() {}", "c++20", nullptr},
    {"template <class T> requires (sizeof(T) == 4) __device__ void f(T* x) {}\n__global__ void g() {}",
     "c++20", nullptr},
    {"__device__ void g(auto* x) {}\n__global__ void f() {}", "c++20", nullptr},
};

/// The fix, with its number in its kernel's name.
std::string cure_of_its_own(std::string cured, std::ptrdiff_t number) {
    return cured.replace(cured.find(" f("), 2, " f" + std::to_string(number)) + "\n";
}

std::string help_in(const std::string& message) {
    const std::size_t at = message.find("\nhelp: ");
    return at == message.npos ? std::string() : message.substr(at + 1, message.find('\n', at + 1) - at - 1);
}

TEST_CASE("every common mistake brings its line of help, and the cure compiles") {
    std::string with_headers;  // each fix sees its own headers and those of the fixes before it
    for (const Mistake& mistake : mistakes) {
        const std::string message = compile_error(mistake.text);
        CAPTURE(std::string(mistake.text));
        CAPTURE(message);
        CHECK(contains(help_in(message), mistake.help));
        if (mistake.cured == nullptr) continue;
        CAPTURE(std::string(mistake.cured));
        if (contains(mistake.cured, "#include <cu")) {
            with_headers += cure_of_its_own(mistake.cured, &mistake - mistakes);
        } else {
            CHECK(compile_error(mistake.cured).empty());
        }
    }
    CHECK(compile_error(with_headers) == "");
}

TEST_CASE("a template argument that the text does not know brings the header that declares it") {
    const auto message = [](const std::string& includes, const std::string& type) {
        Program one = program(includes + "template <class T> __global__ void f(T* x) { x[0] = x[1]; }");
        one.instances = {{"f", "f<" + type + ">"}};
        return compile_error(one);
    };
    CHECK(contains(message("", "__half"), "help: #include <cuda_fp16.h> for it."));
    CHECK(message("#include <cuda_fp16.h>\n", "__half").empty());
    CHECK(contains(message("", "cuda::std::complex<float>"), "help: #include <cuda/std/complex> for it."));
    CHECK(message("#include <cuda/std/complex>\n", "cuda::std::complex<float>").empty());
    CHECK(contains(message("", "float32"), "help: in C++ it is float."));
}

TEST_CASE("a line break in a string is one error") {
    const std::string message = compile_error("__global__ void f(int n) {\n    printf(\"n is %d\n\", n);\n}");
    CHECK(contains(message, "... and 3 more errors that follow from it"));
    CHECK_FALSE(contains(message, "expected a"));
}

TEST_CASE("what only C++20 has compiles with the option that the help names") {
    for (const char* text : {"template <class T> concept C = true;\n__global__ void f() {}",
                             "template <class T> requires (sizeof(T) == 4) __device__ void f(T* x) "
                             "{}\n__global__ void g() {}",
                             "__device__ void g(auto* x) {}\n__global__ void f() {}"}) {
        Program one = program(text);
        one.options.std = "c++20";
        CHECK(compile_error(one).empty());
    }
}

TEST_CASE("host functions compile with the option that the help names") {
    Program one = program("int g(int a) { return a; }\n__global__ void f(int* x) { x[0] = g(1); }");
    one.options.extra = {"-default-device"};
    CHECK(compile_error(one).empty());
}

TEST_CASE("an error that nobody makes by habit brings no help") {
    for (const char* text :
         {"__global__ void f(int* x) { x[0] = qqqqqq; }", "__global__ void f(int* x) { int x; }",
          "__global__ void f(int* x) {} __global__ void f(int* x) {}",
          "__global__ void f(int* x) { i = 1; }"}) {
        CAPTURE(std::string(text));
        CHECK_FALSE(contains(compile_error(text), "help:"));
    }
}

TEST_CASE("too much shared memory is told in bytes, with what to give at the launch") {
    Program one = program(
        "__global__ void f(int* x) {\n    __shared__ int s[20000];\n    s[threadIdx.x] = x[0];\n"
        "    __syncthreads();\n    x[0] = s[x[1]];\n}");
    one.arch = parse_arch("sm_80");
    const std::string message = compile_error(one);
    CAPTURE(message);
    CHECK(contains(message, "hold 49152 bytes together"));
    CHECK(contains(message, "shared_bytes=80000"));
}

TEST_CASE("a function without a body is named as C++ spells it") {
    Program one = program("__device__ int g(int);\n__global__ void f(int* x) { x[0] = g(1); }");
    one.arch = parse_arch("sm_80");
    CHECK(contains(compile_error(one), "g(int) is declared but not defined"));
}

TEST_CASE("a misspelt option brings the one that was meant, as NVRTC spells it") {
    const auto message = [](const char* option) {
        Program one = program("__global__ void f() {}");
        one.options.extra = {option};
        return compile_error(one);
    };
    CHECK(contains(message("--use_fast_maths"), "did you mean --use_fast_math?"));
    CHECK(contains(message("-fmd=false"), "did you mean --fmad?"));
    CHECK_FALSE(contains(message("--quite-another-thing"), "did you mean"));
}

TEST_CASE("C++23 compiles, or the error names the NVRTC that has it") {
    Program one = program("__global__ void f(int* x) { if consteval { x[0] = 1; } }");
    one.options.std = "c++23";
    const Nvrtc::Version version = compiler().nvrtc()->version();
    const bool has_it = version.major > 13 || (version.major == 13 && version.minor >= 3);
    const std::string message = compile_error(one);
    CAPTURE(message);
    CHECK(message.empty() == has_it);
    if (!has_it) CHECK(contains(message, "c++23 needs NVRTC 13.3"));
}

TEST_CASE("an unknown option brings the nearest that NVRTC has") {
    CHECK(nearest_option("--use_fast_maths") == "--use_fast_math");
    CHECK(nearest_option("-use_fast_mth") == "--use_fast_math");
    CHECK(nearest_option("--maxregcount=32") == "--maxrregcount");
    CHECK(nearest_option("--something-else").empty());
    CHECK(nearest_option("").empty());
    CHECK(nearest_option("---").empty());
}

}  // namespace
}  // namespace bascule::testing
