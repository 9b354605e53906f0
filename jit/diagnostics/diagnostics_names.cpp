// Names that the compiler does not know, and what was probably meant. A row has a name and its fix; the tests compile both.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

/// Names that need a header, a namespace, or another name.
constexpr std::array unqualified = {
    NameRow{"__nv_bfloat16* nv_bfloat16* __float2bfloat16* __bfloat162float",
            "#include <cuda_bf16.h> for it."},
    NameRow{"__nv_fp8*", "#include <cuda_fp8.h> for it."},
    NameRow{"__nv_fp6*", "#include <cuda_fp6.h> for it (CUDA 12.8 or newer)."},
    NameRow{"__nv_fp4*", "#include <cuda_fp4.h> for it (CUDA 12.8 or newer)."},
    NameRow{"__half* __float2half* half half2 __h*", "#include <cuda_fp16.h> for it."},
    NameRow{"cuFloatComplex",
            "#include <cuComplex.h> for it, or take cuda::std::complex<float> of <cuda/std/complex>."},
    NameRow{"cuDoubleComplex",
            "#include <cuComplex.h> for it, or take cuda::std::complex<double> of <cuda/std/complex>."},
    NameRow{"make_cu*", "#include <cuComplex.h> for it."},
    NameRow{"curand*", "#include <curand_kernel.h> for it."},
    NameRow{"int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
            "#include <cstdint> for it."},
    NameRow{"bool_ bool8", "in C++ it is bool."},
    NameRow{"byte", "in C++ it is signed char, or unsigned char for NumPy's uint8."},
    NameRow{"int8", "in C++ it is signed char."},
    NameRow{"int16", "in C++ it is short."},
    NameRow{"int32", "in C++ it is int."},
    NameRow{"int64", "in C++ it is long long."},
    NameRow{"uint8 uchar", "in C++ it is unsigned char."},
    NameRow{"uint16 ushort", "in C++ it is unsigned short."},
    NameRow{"uint32 uint", "in C++ it is unsigned."},
    NameRow{"uint64", "in C++ it is unsigned long long."},
    NameRow{"ulong", "in C++ it is unsigned long."},
    NameRow{"float16", "in CUDA C++ it is __half: #include <cuda_fp16.h> for it."},
    NameRow{"float32", "in C++ it is float."},
    NameRow{"float64", "in C++ it is double."},
    NameRow{"bfloat16", "in CUDA C++ it is __nv_bfloat16: #include <cuda_bf16.h> for it."},
    NameRow{"complex64", "in C++ it is cuda::std::complex<float>: #include <cuda/std/complex> for it."},
    NameRow{"complex128", "in C++ it is cuda::std::complex<double>: #include <cuda/std/complex> for it."},
    NameRow{"INT_M* UINT_MAX LLONG_M* CHAR_BIT", "#include <climits> for it."},
    NameRow{"FLT_* DBL_*", "#include <cfloat> for it."},
    NameRow{"INFINITY NAN HUGE_VAL* M_*", "#include <cmath> for it."},
    NameRow{"True", "in C++ it is true."},
    NameRow{"False", "in C++ it is false."},
    NameRow{"None", "in C++ it is nullptr."},
    NameRow{"concept", "concepts are C++20: CompileOptions(std=\"c++20\")."},
    NameRow{"requires", "constraints are C++20: CompileOptions(std=\"c++20\")."},
    NameRow{"__shfl_sync",
            "the calls are __shfl_up_sync, __shfl_down_sync, __shfl_xor_sync and __shfl_sync."},
    NameRow{"__shfl_down", "since CUDA 9 it takes a mask: __shfl_down_sync(0xffffffff, value, delta)."},
    NameRow{"__shfl_up", "since CUDA 9 it takes a mask: __shfl_up_sync(0xffffffff, value, delta)."},
    NameRow{"__shfl_xor", "since CUDA 9 it takes a mask: __shfl_xor_sync(0xffffffff, value, lanes)."},
    NameRow{"__shfl", "since CUDA 9 it takes a mask: __shfl_sync(0xffffffff, value, lane)."},
    NameRow{"__ballot", "since CUDA 9 it takes a mask: __ballot_sync(0xffffffff, condition)."},
    NameRow{"__any", "since CUDA 9 it takes a mask: __any_sync(0xffffffff, condition)."},
    NameRow{"__all", "since CUDA 9 it takes a mask: __all_sync(0xffffffff, condition)."},
    NameRow{"array_view", "its namespace is missing: bascule::array_view."},
    NameRow{"masked_view", "its namespace is missing: bascule::masked_view."},
    NameRow{"grid_stride", "its namespace is missing: bascule::grid_stride."},
    NameRow{"cooperative_groups", "#include <cooperative_groups.h> for it."},
    NameRow{"cg", "#include <cooperative_groups.h> and write `namespace cg = cooperative_groups;`."},
    NameRow{"nvcuda", "#include <mma.h> for it."},
    NameRow{"wmma", "#include <mma.h> and write nvcuda::wmma."},
    NameRow{"cub", "#include <cub/cub.cuh>, or the one header of CUB that you need, which compiles faster."},
    NameRow{"complex pycuda", "#include <cuda/std/complex> and write cuda::std::complex<float>."},
    NameRow{"cudaMalloc*", "NVRTC compiles device code only: allocate in the program that launches."},
    NameRow{"cudaMemcpy*", "NVRTC compiles device code only: copy in the program that launches."},
    NameRow{
        "cudaDeviceSynchronize",
        "NVRTC compiles device code only: the program that launches synchronizes; __syncthreads() is for the threads of a block."},
    NameRow{
        "cudaError* cudaSuccess cudaGet* cudaPeek* cudaSet* cudaFree* cudaStream* cudaEvent* cudaHost* cudaFunc* "
        "cudaLaunch* cudaBind* exit",
        "NVRTC compiles device code only: put what calls it between `#ifndef __CUDACC_RTC__` and `#endif`."},
};

/// The libcu++ headers for names of namespace std.
constexpr std::array in_cuda_std = {
    NameRow{"array", "array"},
    NameRow{"atomic* memory_order*", "atomic"},
    NameRow{"bit_cast popcount countl_* countr_*", "bit"},
    NameRow{"chrono", "chrono"},
    NameRow{"complex", "complex"},
    NameRow{"size_t ptrdiff_t byte", "cstddef"},
    NameRow{"int8_t int16_t int32_t int64_t uint*", "cstdint"},
    NameRow{"plus minus multiplies less greater equal_to invoke", "functional"},
    NameRow{"initializer_list", "initializer_list"},
    NameRow{"numeric_limits", "limits"},
    NameRow{"mdspan extents dextents", "mdspan"},
    NameRow{"optional nullopt", "optional"},
    NameRow{"span", "span"},
    NameRow{"tuple make_tuple tie get apply", "tuple"},
    NameRow{"is_* enable_if* conditional* remove_* decay* common_type* integral_constant make_unsigned*",
            "type_traits"},
    NameRow{
        "move forward swap pair make_pair exchange declval index_sequence* integer_sequence make_index_sequence",
        "utility"},
    NameRow{"variant visit", "variant"},
};

constexpr std::string_view builtin_functions =
    "min max abs fabs sqrt cbrt pow exp exp2 log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh floor ceil "
    "round fmin fmax fma hypot printf";

constexpr std::array in_cuda = {
    NameRow{"atomic_ref atomic*", "cuda/atomic"},        NameRow{"barrier memcpy_async", "cuda/barrier"},
    NameRow{"pipeline* make_pipeline", "cuda/pipeline"}, NameRow{"latch", "cuda/latch"},
    NameRow{"counting_semaphore", "cuda/semaphore"},
};

/// The qualified name around the diagnostic's column, such as `std::min`.
std::string qualified_name_at(const Diagnostic& diagnostic) {
    const std::string& line = diagnostic.source_line;
    const bool ascii = std::ranges::all_of(line, [](unsigned char c) { return c < 0x80; });
    const auto at = static_cast<std::size_t>(std::max(diagnostic.column - 1, 0));
    const auto belongs = [&](std::size_t i) { return continues_word(line[i]) || line[i] == ':'; };
    if (!ascii || diagnostic.column < 1 || at >= line.size() || !belongs(at)) return {};
    std::size_t begin = at;
    std::size_t end = at;
    while (begin > 0 && belongs(begin - 1)) --begin;
    while (end < line.size() && belongs(end)) ++end;
    std::string name = line.substr(begin, end - begin);
    while (name.ends_with(':')) name.pop_back();
    while (name.starts_with(':')) name.erase(0, 1);
    return name;
}

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

const std::vector<std::string>& builtins() {
    static constexpr std::string_view words =
        "threadIdx blockIdx blockDim gridDim warpSize __syncthreads __syncwarp __threadfence "
        "__threadfence_block __syncthreads_count __shfl_sync __shfl_up_sync __shfl_down_sync "
        "__shfl_xor_sync __ballot_sync __any_sync __all_sync __activemask __popc __clz __ffs __brev "
        "__ldg atomicAdd atomicSub atomicMin atomicMax atomicExch atomicCAS atomicAnd atomicOr atomicXor "
        "atomicInc atomicDec printf assert rsqrtf sqrtf fmaf __fmaf_rn __expf __logf __sinf __cosf "
        "make_float2 make_float3 make_float4 make_int2 make_int4 float2 float3 float4 double2 int2 int4 "
        "uint3 dim3 clock64 __global__ __device__ __shared__ __constant__ __restrict__ __launch_bounds__";
    static const std::vector<std::string> names = [] {
        const std::vector<std::string_view> views = words_of(words);
        return std::vector<std::string>(views.begin(), views.end());
    }();
    return names;
}

/// A type name or keyword at an edit distance of 1: for `flaot` that is float, and not CUDA's float2.
std::string nearest_type(const std::string& name) {
    const std::string nearest = nearest_name(
        name, {"int", "float", "double", "bool", "char", "short", "long", "unsigned", "signed", "void",
               "const", "struct", "template", "typename", "size_t", "float2", "float3", "float4", "double2"});
    return edit_distance(name, nearest) == 1 ? nearest : std::string();
}

/// A name of the text, or of CUDA, with a similar spelling.
std::string nearest_known(const std::string& name, const Source& source) {
    if (std::string type = nearest_type(name); name.size() > 2 && !type.empty()) return type;
    if (name.size() < 4) return {};
    const std::string bare = name.substr(std::min(name.find_first_not_of('_'), name.size()));
    for (const std::string& builtin : builtins()) {
        const std::string core = builtin.substr(builtin.find_first_not_of('_'));
        if (lower(core.substr(0, core.find_last_not_of('_') + 1)) == lower(bare)) return builtin;
    }
    std::set<std::string> words;
    for (const Token& token : lex(source.text).tokens) {
        if (token.kind == Token::Kind::word && token.text != name && token.text.size() > 2)
            words.emplace(token.text);
    }
    std::vector<std::string> near(words.begin(), words.end());
    near.insert(near.end(), builtins().begin(), builtins().end());
    const std::string best = nearest_name(name, near);
    // nearest_name accepts names of which a third of the letters differ; among all words of a text that would match too often.
    return edit_distance(name, best) <= 2 ? best : std::string();
}

/// Names of the standard library that allocate or use the system, with what kernels use instead.
constexpr std::array instead_of_std = {
    NameRow{"vector valarray deque list",
            "take the elements as bascule::array_view<T>, or as a T* and their number"},
    NameRow{"string stringstream ostringstream to_string",
            "take the characters as bascule::array_view<const unsigned char>"},
    NameRow{"cout cerr clog endl ostream", "use printf"},
    NameRow{"map set unordered_map unordered_set multimap",
            "take sorted arrays and search them, or build a table in an array"},
    NameRow{"thread jthread async future promise", "launch more threads: each computes its own elements"},
    NameRow{"mutex lock_guard unique_lock scoped_lock condition_variable",
            "use atomicAdd and its like, or cuda::atomic_ref"},
    NameRow{"shared_ptr unique_ptr weak_ptr make_shared make_unique",
            "take a T*: the caller owns the memory"},
    NameRow{"runtime_error exception logic_error invalid_argument",
            "kernels throw nothing: use assert, or write an error code"},
    NameRow{"random_device mt19937 mt19937_64 uniform_real_distribution normal_distribution",
            "curand_kernel.h of cuRAND has generators for kernels"},
};

std::string help_for_std(const std::string& name) {
    if (fits_one(builtin_functions, name)) {
        return fmt::format("CUDA's own {0} needs neither a header nor a namespace: write {0}(...).", name);
    }
    if (const std::string header = find_row(in_cuda_std, name); !header.empty())
        return fmt::format("#include <cuda/std/{}> and write cuda::std::{}.", header, name);
    if (const std::string other = find_row(instead_of_std, name); !other.empty())
        return fmt::format("kernels have no std::{}: {}.", name, other);
    return fmt::format("kernels have no std::{}, and cuda::std has none that Bascule knows of.", name);
}

}  // namespace

std::string help_for_name(const std::string& name, const Diagnostic& diagnostic, const Source& source) {
    const std::string qualified = qualified_name_at(diagnostic);
    const std::size_t colons = qualified.rfind("::");
    const std::string last = colons == qualified.npos ? qualified : qualified.substr(colons + 2);
    if (qualified.starts_with("std::")) return help_for_std(qualified.substr(5, qualified.find("::", 5) - 5));
    if (qualified.starts_with("cuda::std::")) {
        const std::string member = qualified.substr(11, qualified.find("::", 11) - 11);
        const std::string header = find_row(in_cuda_std, member);
        if (!header.empty()) return fmt::format("#include <cuda/std/{}> for it.", header);
        return help_for_std(member);
    }
    if (qualified.starts_with("cuda::")) {
        const std::string header = find_row(in_cuda, last);
        if (!header.empty()) return fmt::format("#include <{}> for it.", header);
    }
    if (qualified.starts_with("bascule::")) {
        const std::string nearest = nearest_name(last, {"array_view", "masked_view", "grid_stride"});
        if (!nearest.empty()) return fmt::format("did you mean bascule::{}?", nearest);
    }
    if (std::string help = find_row(unqualified, name); !help.empty()) return help;
    const std::string nearest = nearest_known(name, source);
    return nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest);
}

std::string unknown_name(const Diagnostic& diagnostic) {
    const std::string& message = diagnostic.message;
    const auto quoted = [&](std::string_view before) {
        const std::size_t begin = message.find(before) + before.size();
        return message.substr(begin, message.find('"', begin) - begin);
    };
    if (message.starts_with("identifier \"") && message.ends_with("is undefined"))
        return quoted("identifier \"");
    if (message.starts_with("namespace \"") && message.find("has no member \"") != message.npos)
        return quoted("has no member \"");
    if (message.starts_with("the global scope has no \"")) return quoted("has no \"");
    if (message.starts_with("name followed by \"::\"")) {
        const std::string name = qualified_name_at(diagnostic);
        const auto at = static_cast<std::size_t>(diagnostic.column - 1);
        std::size_t end = at;
        while (end < diagnostic.source_line.size() && continues_word(diagnostic.source_line[end])) ++end;
        return name.empty() ? std::string() : diagnostic.source_line.substr(at, end - at);
    }
    return {};
}

std::string header_for_incomplete(const std::string& message) {
    static constexpr std::string_view lead = "incomplete type \"";
    if (!message.starts_with("incomplete type \"cuda::std::")) return {};
    std::string name = message.substr(lead.size());
    name.resize(std::min(name.find_first_of("<\""), name.size()));
    name.erase(0, name.rfind("::") + 2);
    const std::string header = find_row(in_cuda_std, name);
    return header.empty() ? std::string() : "cuda/std/" + header;
}

}  // namespace bascule
