// Tables of common mistakes. A row is a mistake and its cure; the tests compile both.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/did_you_mean.hpp>
#include <bascule/jit/diagnostics.hpp>
#include <bascule/jit/diagnostics_help.hpp>
#include <bascule/jit/lexer.hpp>

namespace bascule {
namespace {

/// A name, or the beginning of one where it ends with '*'.
struct NameRow {
    std::string_view name;
    std::string_view help;
};

bool fits(std::string_view pattern, std::string_view name) {
    if (!pattern.ends_with('*')) return name == pattern;
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
}

std::string find_row(std::span<const NameRow> rows, std::string_view name) {
    for (const NameRow& row : rows) {
        if (fits(row.name, name)) return std::string(row.help);
    }
    return {};
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// --- Headers
// -------------------------------------------------------------------------------------------------

constexpr std::array packages = {
    NameRow{"cuda/*", "nvidia-cuda-cccl"},
    NameRow{"cub/*", "nvidia-cuda-cccl"},
    NameRow{"thrust/*", "nvidia-cuda-cccl"},
    NameRow{"nv/*", "nvidia-cuda-cccl"},
    NameRow{"crt/*", "nvidia-cuda-crt"},
    NameRow{"cuda*", "nvidia-cuda-runtime"},
    NameRow{"cooperative_groups*", "nvidia-cuda-runtime"},
    NameRow{"mma.h", "nvidia-cuda-runtime"},
    NameRow{"curand*", "nvidia-curand"},
};

constexpr std::array<std::string_view, 26> host_headers = {
    "algorithm", "array",    "assert.h",    "atomic",   "cassert",  "cmath",   "complex",
    "cstddef",   "cstdint",  "cstdio",      "cstdlib",  "cstring",  "float.h", "iostream",
    "limits",    "limits.h", "math.h",      "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string",    "tuple",    "type_traits", "utility",  "vector"};

std::string help_for_header(const std::string& header) {
    if (const std::string package = find_row(packages, header); !package.empty()) {
        return fmt::format("{} comes with `pip install {}` or a CUDA toolkit.", header, package);
    }
    if (std::find(host_headers.begin(), host_headers.end(), header) != host_headers.end()) {
        const std::string cuda = header.ends_with(".h") ? "c" + header.substr(0, header.size() - 2) : header;
        static constexpr std::array<std::string_view, 7> none = {"iostream", "string",  "vector", "cstdio",
                                                                 "cstdlib",  "cstring", "cassert"};
        const bool exists = std::find(none.begin(), none.end(), cuda) == none.end();
        return "NVRTC has no host headers. Mathematical functions, printf and assert need none" +
               (exists ? fmt::format("; for <{}> try <cuda/std/{}>.", header, cuda) : std::string("."));
    }
    return fmt::format("add the directory of {} to include_paths, or its text to headers.", header);
}

std::string missing_header(const std::string& message) {
    if (message.find("open source file") == message.npos) return {};
    const std::size_t begin = message.find('"');
    const std::size_t end = message.find('"', begin + 1);
    return end == message.npos ? std::string() : message.substr(begin + 1, end - begin - 1);
}

// --- Names that the compiler does not know
// -------------------------------------------------------------------

/// Names that need a header, a namespace, or another name.
constexpr std::array unqualified = {
    NameRow{"__nv_bfloat16*", "#include <cuda_bf16.h> for it."},
    NameRow{"nv_bfloat16*", "#include <cuda_bf16.h> for it."},
    NameRow{"__float2bfloat16*", "#include <cuda_bf16.h> for it."},
    NameRow{"__bfloat162float", "#include <cuda_bf16.h> for it."},
    NameRow{"__nv_fp8*", "#include <cuda_fp8.h> for it."},
    NameRow{"__nv_fp6*", "#include <cuda_fp6.h> for it (CUDA 12.8 or newer)."},
    NameRow{"__nv_fp4*", "#include <cuda_fp4.h> for it (CUDA 12.8 or newer)."},
    NameRow{"__half*", "#include <cuda_fp16.h> for it."},
    NameRow{"__float2half*", "#include <cuda_fp16.h> for it."},
    NameRow{"half", "#include <cuda_fp16.h> for it."},
    NameRow{"half2", "#include <cuda_fp16.h> for it."},
    NameRow{"__h*", "#include <cuda_fp16.h> for it."},
    NameRow{"cuFloatComplex",
            "#include <cuComplex.h> for it, or take cuda::std::complex<float> of "
            "<cuda/std/complex>."},
    NameRow{"cuDoubleComplex",
            "#include <cuComplex.h> for it, or take cuda::std::complex<double> of "
            "<cuda/std/complex>."},
    NameRow{"make_cu*", "#include <cuComplex.h> for it."},
    NameRow{"curand*", "#include <curand_kernel.h> for it; it comes with `pip install nvidia-curand`."},
    NameRow{"int8_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"int16_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"int32_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"int64_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"uint8_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"uint16_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"uint32_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"uint64_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"uintptr_t", "#include <cuda/std/cstdint> for it."},
    NameRow{"INT_M*", "#include <cuda/std/climits> for it."},
    NameRow{"UINT_MAX", "#include <cuda/std/climits> for it."},
    NameRow{"FLT_*", "say cuda::std::numeric_limits<float> of <cuda/std/limits>."},
    NameRow{"DBL_*", "say cuda::std::numeric_limits<double> of <cuda/std/limits>."},
    NameRow{"INFINITY", "say CUDART_INF_F of <math_constants.h>."},
    NameRow{"NAN", "say CUDART_NAN_F of <math_constants.h>."},
    NameRow{"M_PI", "say CUDART_PI of <math_constants.h>, or CUDART_PI_F for a float."},
    NameRow{"True", "C++ says true."},
    NameRow{"False", "C++ says false."},
    NameRow{"None", "C++ says nullptr."},
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
    NameRow{"grid_stride", "its namespace is missing: bascule::grid_stride."},
    NameRow{"cooperative_groups", "#include <cooperative_groups.h> for it."},
    NameRow{"cg", "#include <cooperative_groups.h> and say `namespace cg = cooperative_groups;`."},
    NameRow{"nvcuda", "#include <mma.h> for it."},
    NameRow{"wmma", "#include <mma.h> and say nvcuda::wmma."},
    NameRow{"cub", "#include <cub/cub.cuh>, or the one header of CUB that you need, which compiles faster."},
    NameRow{"cudaMalloc*", "a text for NVRTC holds device code only: allocate in the program that launches."},
    NameRow{"cudaMemcpy*", "a text for NVRTC holds device code only: copy in the program that launches."},
    NameRow{"cudaDeviceSynchronize",
            "a text for NVRTC holds device code only: the program that launches "
            "synchronizes; __syncthreads() is for the threads of a block."},
};

/// Where libcu++ has what C++ has in namespace std.
constexpr std::array in_cuda_std = {
    NameRow{"array", "array"},
    NameRow{"atomic*", "atomic"},
    NameRow{"memory_order*", "atomic"},
    NameRow{"bit_cast", "bit"},
    NameRow{"popcount", "bit"},
    NameRow{"countl_*", "bit"},
    NameRow{"countr_*", "bit"},
    NameRow{"chrono", "chrono"},
    NameRow{"complex", "complex"},
    NameRow{"size_t", "cstddef"},
    NameRow{"ptrdiff_t", "cstddef"},
    NameRow{"byte", "cstddef"},
    NameRow{"int*_t", "cstdint"},
    NameRow{"int8_t", "cstdint"},
    NameRow{"int16_t", "cstdint"},
    NameRow{"int32_t", "cstdint"},
    NameRow{"int64_t", "cstdint"},
    NameRow{"uint*", "cstdint"},
    NameRow{"plus", "functional"},
    NameRow{"minus", "functional"},
    NameRow{"multiplies", "functional"},
    NameRow{"less", "functional"},
    NameRow{"greater", "functional"},
    NameRow{"equal_to", "functional"},
    NameRow{"invoke", "functional"},
    NameRow{"initializer_list", "initializer_list"},
    NameRow{"numeric_limits", "limits"},
    NameRow{"mdspan", "mdspan"},
    NameRow{"extents", "mdspan"},
    NameRow{"dextents", "mdspan"},
    NameRow{"optional", "optional"},
    NameRow{"nullopt", "optional"},
    NameRow{"span", "span"},
    NameRow{"tuple", "tuple"},
    NameRow{"make_tuple", "tuple"},
    NameRow{"tie", "tuple"},
    NameRow{"get", "tuple"},
    NameRow{"apply", "tuple"},
    NameRow{"is_*", "type_traits"},
    NameRow{"enable_if*", "type_traits"},
    NameRow{"conditional*", "type_traits"},
    NameRow{"remove_*", "type_traits"},
    NameRow{"decay*", "type_traits"},
    NameRow{"common_type*", "type_traits"},
    NameRow{"integral_constant", "type_traits"},
    NameRow{"make_unsigned*", "type_traits"},
    NameRow{"move", "utility"},
    NameRow{"forward", "utility"},
    NameRow{"swap", "utility"},
    NameRow{"pair", "utility"},
    NameRow{"make_pair", "utility"},
    NameRow{"exchange", "utility"},
    NameRow{"declval", "utility"},
    NameRow{"*_sequence", "utility"},
    NameRow{"index_sequence*", "utility"},
    NameRow{"integer_sequence", "utility"},
    NameRow{"make_index_sequence", "utility"},
    NameRow{"variant", "variant"},
    NameRow{"visit", "variant"},
};

constexpr std::array<std::string_view, 30> builtin_functions = {
    "min",  "max",   "abs",   "fabs", "sqrt",  "cbrt", "pow",  "exp",  "exp2",  "log",
    "log2", "log10", "sin",   "cos",  "tan",   "asin", "acos", "atan", "atan2", "sinh",
    "cosh", "tanh",  "floor", "ceil", "round", "fmin", "fmax", "fma",  "hypot", "printf"};

constexpr std::array in_cuda = {
    NameRow{"atomic_ref", "cuda/atomic"},  NameRow{"atomic*", "cuda/atomic"},
    NameRow{"barrier", "cuda/barrier"},    NameRow{"memcpy_async", "cuda/barrier"},
    NameRow{"pipeline*", "cuda/pipeline"}, NameRow{"make_pipeline", "cuda/pipeline"},
    NameRow{"latch", "cuda/latch"},        NameRow{"counting_semaphore", "cuda/semaphore"},
};

/// `std::min` is one word: the qualified name around the diagnostic's column.
std::string qualified_name_at(const Diagnostic& diagnostic) {
    const std::string& line = diagnostic.source_line;
    const bool ascii = std::all_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x80; });
    const auto at = static_cast<std::size_t>(std::max(diagnostic.column - 1, 0));
    const auto belongs = [&](std::size_t i) { return is_name_character(line[i]) || line[i] == ':'; };
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
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

const std::vector<std::string>& builtins() {
    static const std::vector<std::string> names = {
        "threadIdx",
        "blockIdx",
        "blockDim",
        "gridDim",
        "warpSize",
        "__syncthreads",
        "__syncwarp",
        "__threadfence",
        "__threadfence_block",
        "__syncthreads_count",
        "__shfl_sync",
        "__shfl_up_sync",
        "__shfl_down_sync",
        "__shfl_xor_sync",
        "__ballot_sync",
        "__any_sync",
        "__all_sync",
        "__activemask",
        "__popc",
        "__clz",
        "__ffs",
        "__brev",
        "__ldg",
        "atomicAdd",
        "atomicSub",
        "atomicMin",
        "atomicMax",
        "atomicExch",
        "atomicCAS",
        "atomicAnd",
        "atomicOr",
        "atomicXor",
        "atomicInc",
        "atomicDec",
        "printf",
        "assert",
        "rsqrtf",
        "sqrtf",
        "fmaf",
        "__fmaf_rn",
        "__expf",
        "__logf",
        "__sinf",
        "__cosf",
        "make_float2",
        "make_float3",
        "make_float4",
        "make_int2",
        "make_int4",
        "float2",
        "float3",
        "float4",
        "double2",
        "int2",
        "int4",
        "uint3",
        "dim3",
        "clock64",
        "__global__",
        "__device__",
        "__shared__",
        "__constant__",
        "__restrict__",
        "__launch_bounds__",
    };
    return names;
}

/// What stands elsewhere in the text, or is CUDA's own, and is spelled nearly so.
std::string nearest_known(const std::string& name, const Source& source) {
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
    // A long name may differ in a third of its letters; here that is too much, there are so many words.
    return edit_distance(name, best) <= 2 ? best : std::string();
}

std::string help_for_std(const std::string& name) {
    if (std::find(builtin_functions.begin(), builtin_functions.end(), name) != builtin_functions.end()) {
        return fmt::format("CUDA's own {0} needs neither a header nor a namespace: say {0}(...).", name);
    }
    if (const std::string header = find_row(in_cuda_std, name); !header.empty()) {
        return fmt::format("NVRTC has no std: #include <cuda/std/{}> and say cuda::std::{}.", header, name);
    }
    return fmt::format(
        "NVRTC has no std. Much of it is in cuda::std, and std::{} has no counterpart that we "
        "know of.",
        name);
}

std::string help_for_name(const std::string& name, const std::string& qualified, const Source& source) {
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
        const std::string nearest = nearest_name(last, {"array_view", "grid_stride"});
        if (!nearest.empty()) return fmt::format("did you mean bascule::{}?", nearest);
    }
    if (const std::string help = find_row(unqualified, name); !help.empty()) return help;
    const std::string nearest = nearest_known(name, source);
    return nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest);
}

// --- Mistakes that the message itself tells
// ---------------------------------------------------------------------

struct MessageRow {
    std::string_view message;      ///< a part of NVRTC's
    std::string_view source_line;  ///< a part of the line; empty: any
    std::string_view help;
};

constexpr std::array by_message = {
    MessageRow{"class \"uint3\" has no member", "",
               "threadIdx and blockIdx have three members: .x, .y and .z."},
    MessageRow{"has no member", "Dim.", "blockDim and gridDim have three members: .x, .y and .z."},
    MessageRow{"A function without execution space annotations", "",
               "write `__device__` before a function that kernels call; with extra=[\"-default-device\"] "
               "every function is one."},
    MessageRow{"explicitly marked as a __host__ function", "",
               "NVRTC compiles device code only: write `__device__` instead, or keep the function out of "
               "the text."},
    MessageRow{"A namespace scope variable without memory space annotations", "",
               "write `__device__` or `__constant__` before it, or `constexpr` where its value is known."},
    MessageRow{"must have a void return type", "",
               "a kernel returns nothing: write results into an array that it takes as a parameter."},
    MessageRow{"annotation on lambda", "",
               "leave the annotation out: a lambda inside a kernel runs where the kernel does."},
    MessageRow{"incomplete type", "__shared__",
               "an array without a size is `extern __shared__ T name[];`, its size given at the launch: "
               "shared_bytes."},
    MessageRow{"must have a constant value", "__shared__",
               "the size of a __shared__ array is fixed at compile time: make it a define or a template "
               "parameter, or declare `extern __shared__ T name[];` and give shared_bytes at the launch."},
    MessageRow{"initializer not allowed for __shared__", "",
               "assign in the kernel, by one thread, and call __syncthreads() before others read it."},
    MessageRow{"device-side kernel launch", "",
               "a kernel cannot launch another here: launch both from the host, on one stream."},
    MessageRow{"must be a modifiable lvalue", "",
               "what is const cannot be written: take the parameter as `T*` or array_view<T>, without "
               "const."},
    MessageRow{"matches these operands", "Dim",
               "blockIdx, blockDim and threadIdx are triples: blockIdx.x * blockDim.x + threadIdx.x."},
    MessageRow{"matches these operands", "Idx",
               "blockIdx, blockDim and threadIdx are triples: blockIdx.x * blockDim.x + threadIdx.x."},
    MessageRow{"must have class type but it has type", "",
               "a pointer or a number has no members: index a pointer, or declare the parameter as "
               "bascule::array_view<T>, which has .size()."},
    MessageRow{"\"auto\" is not allowed here", "",
               "`auto` parameters are C++20: CompileOptions(std=\"c++20\")."},
    MessageRow{"no storage class or type specifier", "requires",
               "constraints are C++20: CompileOptions(std=\"c++20\")."},
    MessageRow{"no storage class or type specifier", "global ",
               "did you mean __global__, with two underscores on either side?"},
    MessageRow{"no storage class or type specifier", "device ",
               "did you mean __device__, with two underscores on either side?"},
    MessageRow{"Not a name of any known instruction", "",
               "an asm(\"...\") of the text is no PTX that this architecture has."},
};

/// "Entry function '_Z1fPi' uses too much shared data (0x13880 bytes, 0xc000 max)".
std::string help_for_shared_memory(const std::string& message) {
    const std::size_t at = message.find("too much shared data (0x");
    const std::size_t most = message.find(", 0x", at);
    if (at == message.npos || most == message.npos) return {};
    const auto hexadecimal = [&](std::size_t begin) {
        return std::strtoull(message.c_str() + begin, nullptr, 16);
    };
    return fmt::format(
        "__shared__ arrays of fixed size hold {} bytes together, and these hold {}: declare `extern "
        "__shared__ T name[];` and give the size at the launch, shared_bytes={}.",
        hexadecimal(most + 2), hexadecimal(at + 22), hexadecimal(at + 22));
}

/// "Unresolved extern function '_Z1gi'".
std::string help_for_unresolved(const std::string& message) {
    static constexpr std::string_view lead = "Unresolved extern ";
    const std::size_t at = message.find(lead);
    const std::size_t begin = message.find('\'', at);
    const std::size_t end = message.find('\'', begin + 1);
    if (at == message.npos || end == message.npos) return {};
    const std::string mangled = message.substr(begin + 1, end - begin - 1);
    const std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr), &std::free);
    return fmt::format(
        "{} is declared and nowhere defined. Nothing is linked in: its body must be in the text or in "
        "an #include.",
        name ? name.get() : mangled);
}

/// "expected a ";"" at the beginning of a line: the one before lacks it.
std::string help_for_semicolon(const Diagnostic& diagnostic) {
    if (!diagnostic.message.starts_with("expected a \";\"")) return {};
    const std::size_t first = diagnostic.source_line.find_first_not_of(" \t");
    const bool leads = diagnostic.column > 0 && static_cast<std::size_t>(diagnostic.column) == first + 1;
    return leads ? "the line before it ends without `;`." : "";
}

std::string help_for_message(const Diagnostic& diagnostic) {
    const auto fitting = std::find_if(by_message.begin(), by_message.end(), [&](const MessageRow& row) {
        return diagnostic.message.find(row.message) != std::string::npos &&
               diagnostic.source_line.find(row.source_line) != std::string::npos;
    });
    return fitting == by_message.end() ? std::string() : std::string(fitting->help);
}

}  // namespace

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
        while (end < diagnostic.source_line.size() && is_name_character(diagnostic.source_line[end])) ++end;
        return name.empty() ? std::string() : diagnostic.source_line.substr(at, end - at);
    }
    return {};
}

std::string help_for(const Diagnostic& diagnostic, const Source& source) {
    if (const std::string header = missing_header(diagnostic.message); !header.empty())
        return help_for_header(header);
    if (const std::string name = unknown_name(diagnostic); !name.empty()) {
        return help_for_name(name, qualified_name_at(diagnostic), source);
    }
    if (diagnostic.message.starts_with("incomplete type \"cuda::std::")) {
        // Forward-declared by a header that is there; its own is not.
        std::string name = diagnostic.message.substr(12, diagnostic.message.find_first_of("<\"", 14) - 12);
        name.erase(0, name.rfind("::") + 2);
        const std::string header = find_row(in_cuda_std, name);
        if (!header.empty()) return fmt::format("#include <cuda/std/{}> for it.", header);
    }
    for (const std::string& help :
         {help_for_message(diagnostic), help_for_shared_memory(diagnostic.message),
          help_for_unresolved(diagnostic.message), help_for_semicolon(diagnostic)}) {
        if (!help.empty()) return help;
    }
    return {};
}

std::string nearest_option(std::string_view option) {
    static const std::vector<std::string> known = {"--use_fast_math",
                                                   "--ftz",
                                                   "--prec-sqrt",
                                                   "--prec-div",
                                                   "--fmad",
                                                   "--maxrregcount",
                                                   "--restrict",
                                                   "--extra-device-vectorization",
                                                   "--relocatable-device-code",
                                                   "--device-debug",
                                                   "--generate-line-info",
                                                   "--ptxas-options",
                                                   "--diag-suppress",
                                                   "--diag-error",
                                                   "--diag-warn",
                                                   "--disable-warnings",
                                                   "--device-as-default-execution-space",
                                                   "--default-device",
                                                   "--device-int128",
                                                   "--builtin-move-forward",
                                                   "--builtin-initializer-list",
                                                   "--brief-diagnostics",
                                                   "--time",
                                                   "--split-compile",
                                                   "--minimal",
                                                   "--fdevice-syntax-only",
                                                   "--device-stack-protector",
                                                   "--no-source-include",
                                                   "--undefine-macro",
                                                   "--modify-stack-limit",
                                                   "--dlink-time-opt",
                                                   "--gen-opt-lto",
                                                   "--optimization-info",
                                                   "--dopt",
                                                   "--no-cache",
                                                   "--device-c",
                                                   "--device-w",
                                                   "--display-error-number",
                                                   "--no-display-error-number"};
    std::string name(option.substr(0, option.find('=')));
    const std::size_t letters = name.find_first_not_of('-');
    if (letters == name.npos) return {};
    name = "--" + name.substr(letters);
    return nearest_name(name, known);
}

}  // namespace bascule
