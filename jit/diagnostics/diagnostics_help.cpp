// Tables of common mistakes. A row has a mistake and its fix; the tests compile both.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

// --- Headers -----------------------------------------------------------------------------------------------

struct Package {
    std::string_view headers;  ///< as in NameRow::names
    std::string_view name;
    std::string_view name_for_12;
};

constexpr std::array packages = {
    Package{"cuda/* cub/* thrust/* nv/*", "nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12"},
    Package{"crt/*", "nvidia-cuda-crt", "nvidia-cuda-nvcc-cu12"},
    Package{"cuda* cooperative_groups* mma.h", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"},
    Package{"curanddx* cufftdx* cublasdx* cusolverdx*", "nvidia-mathdx", "nvidia-mathdx"},
    Package{"curand*", "nvidia-curand", "nvidia-curand-cu12"},
    Package{"nvtx3/*", "nvidia-nvtx", "nvidia-nvtx-cu12"},
};

/// Headers of the C++ standard library that libcu++ has, and that are not among Bascule's own host headers.
constexpr std::string_view in_cuda_std_only =
    "atomic barrier bitset ccomplex charconv chrono execution expected inplace_vector latch linalg mdspan numbers "
    "optional random ranges ratio semaphore source_location string_view variant version";

/// Other headers that NVRTC does not find or device code cannot use, with what to do instead.
constexpr std::array replaced_headers = {
    NameRow{"nvfunctional",
            "NVRTC has no nvstd::function: take a functor as a template parameter, by value."},
    NameRow{"malloc.h", "leave it out: kernels have malloc and free without it."},
    NameRow{
        "ctype.h errno.h omp.h sys/* Python.h pthread.h signal.h fcntl.h helper_cuda* helper_functions.h helper_string.h "
        "helper_timer.h helper_image.h torch/* ATen/* c10/* pybind11/* cublas* cufft.h cufftXt.h cusparse* cusolver* "
        "cudnn* nccl.h mpi.h nvToolsExt.h",
        "it is for host code: put it, and what uses it, between `#ifndef __CUDACC_RTC__` and `#endif`."},
    NameRow{"pycuda-complex.hpp cupy/complex.cuh cupy/complex/* complex.h",
            "#include <cuda/std/complex> instead: cuda::std::complex<float> has the same layout."},
    NameRow{"pycuda-helpers.hpp",
            "what it has of textures is gone since CUDA 12: leave it out, and take arrays as pointers."},
    NameRow{"cupy/*",
            "take arrays as pointers or as bascule::array_view<T, N>, which knows shape and strides."},
};

std::string help_for_header(const std::string& header) {
    if (std::string help = find_row(replaced_headers, header); !help.empty()) return help;
    for (const Package& package : packages) {
        if (!fits_one(package.headers, header)) continue;
        const std::string for_12 =
            package.name == package.name_for_12 ? "" : fmt::format(" (for CUDA 12 {})", package.name_for_12);
        return fmt::format(
            "{} comes with `pip install {}`{} or a CUDA toolkit of NVRTC's own version, which is found where "
            "CUDA_HOME says.",
            header, package.name, for_12);
    }
    if (fits_one(in_cuda_std_only, header))
        return fmt::format("#include <cuda/std/{}> instead, and write cuda::std:: for std::.", header);
    if (header.find_first_of("./") == header.npos) {
        return fmt::format(
            "<{}> is for host code: remove it, or put it and what uses it between #ifndef __CUDACC_RTC__ and "
            "#endif.",
            header);
    }
    return fmt::format("add the directory of {} to include_paths, or its text to headers.", header);
}

std::string missing_header(const std::string& message) {
    if (message.find("open source file") == message.npos) return {};
    const std::size_t begin = message.find('"');
    const std::size_t end = message.find('"', begin + 1);
    return end == message.npos ? std::string() : message.substr(begin + 1, end - begin - 1);
}

// --- Mistakes that the message itself identifies -----------------------------------------------------------

struct MessageRow {
    std::string_view message;      ///< a part of NVRTC's message
    std::string_view source_line;  ///< a part of the source line; empty: any line
    std::string_view help;
};

constexpr std::string_view host_code_help =
    "NVRTC compiles device code only, and what remains is compiled by your program's own compiler: put main() and "
    "launchers between `#ifndef __CUDACC_RTC__` and `#endif`.";
constexpr std::string_view constexpr_help =
    "write `__device__` before it, or compile with CompileOptions(extra=[\"-default-device\"]), for which nvcc's option is "
    "--expt-relaxed-constexpr: functions without an annotation are then for kernels.";
constexpr std::string_view header_of_host_code_help =
    "a header for host programs: put its #include, and what uses it, between `#ifndef __CUDACC_RTC__` and `#endif`; "
    "a function of yours that kernels call needs `__device__` before it.";
constexpr std::string_view algorithms_help =
    "Thrust's algorithms are for host programs: in a kernel write a loop, or use CUB's for a block or a warp, such as "
    "cub::BlockRadixSort of <cub/block/block_radix_sort.cuh>.";
constexpr std::string_view texture_references_help =
    "texture and surface references are gone since CUDA 12: take a parameter of type cudaTextureObject_t (or "
    "cudaSurfaceObject_t), read it by tex2D<float>(texture, x, y), and pass bascule.texture(array).";

constexpr std::array by_message = {
    MessageRow{"class \"uint3\" has no member", "",
               "threadIdx and blockIdx have three members: .x, .y and .z."},
    MessageRow{"has no member", "Dim.", "blockDim and gridDim have three members: .x, .y and .z."},
    MessageRow{"A function without execution space annotations", " main(", host_code_help},
    MessageRow{"A function without execution space annotations", "<<<", host_code_help},
    MessageRow{"A function without execution space annotations", "constexpr", constexpr_help},
    MessageRow{
        "A function without execution space annotations", "",
        "write `__device__` before a function that kernels call; put one for the host, such as a launcher, "
        "between `#ifndef __CUDACC_RTC__` and `#endif`."},
    MessageRow{
        "incompatible with previous \"atomicAdd\"", "",
        "CUDA has this function since compute capability 6.0: leave out the definition, or give it another name."},
    MessageRow{"texture is not a template", "", texture_references_help},
    MessageRow{"\"texture\" is undefined", "", texture_references_help},
    MessageRow{"surface is not a template", "", texture_references_help},
    MessageRow{"explicitly marked as a __host__ function", "",
               "NVRTC compiles device code only: write `__device__` instead, or put the function between "
               "`#ifndef __CUDACC_RTC__` and `#endif`."},
    MessageRow{"A namespace scope variable without memory space annotations", "",
               "write `__device__` or `__constant__` before it, or `constexpr` where its value is known."},
    MessageRow{"must have a void return type", "",
               "a kernel returns nothing: write results into an array that it takes as a parameter."},
    MessageRow{"annotation on lambda", "",
               "remove the annotation: a lambda inside a kernel runs where the kernel does."},
    MessageRow{"incomplete type", "__shared__",
               "an array without a size is `extern __shared__ T name[];`, its size given at the launch: "
               "shared_bytes."},
    MessageRow{
        "is incompatible with previous", "__shared__",
        "all instances of a program share the one `extern __shared__` array: declare it `extern __shared__ "
        "__align__(16) unsigned char bytes[];` and write `T* s = reinterpret_cast<T*>(bytes);`."},
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
               "an asm(\"...\") of the text is not PTX of this architecture."},
};

/// Handles "Entry function '_Z1fPi' uses too much shared data (0x13880 bytes, 0xc000 max)".
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

/// Handles "Unresolved extern function '_Z1gi'".
std::string help_for_unresolved(const std::string& message) {
    static constexpr std::string_view lead = "Unresolved extern ";
    const std::size_t at = message.find(lead);
    const std::size_t begin = message.find('\'', at);
    const std::size_t end = message.find('\'', begin + 1);
    if (at == message.npos || end == message.npos) return {};
    return fmt::format(
        "{} is declared but not defined. Nothing is linked in: its body must be in the text or in an "
        "#include.",
        readable_name(message.substr(begin + 1, end - begin - 1)));
}

/// Handles "expected a ";"" at the beginning of a line: the semicolon is missing in the line before.
std::string help_for_semicolon(const Diagnostic& diagnostic) {
    if (!diagnostic.message.starts_with("expected a \";\"")) return {};
    const std::size_t first = diagnostic.source_line.find_first_not_of(" \t");
    const bool leads = diagnostic.column > 0 && static_cast<std::size_t>(diagnostic.column) == first + 1;
    return leads ? "the line before it ends without `;`." : "";
}

/// If a string contains a line break, its closing quote is on the next line, where it seems to open another string.
std::string help_for_string(const Diagnostic& diagnostic, const Source& source) {
    if (!is_unclosed_string(diagnostic)) return {};
    const std::string_view next = source_line_of(source.text, diagnostic.line + 1);
    if (std::ranges::count(next, '"') % 2 == 0) return "the string ends without a quote.";
    return "a line break is inside the string. In Python, write r before the text, r\"\"\"...\"\"\", so that "
           "\\n reaches the compiler as it is.";
}

/// The number of bytes of the first character of a UTF-8 text.
std::size_t bytes_of_first(std::string_view text) {
    std::size_t end = 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) ++end;
    return std::min(end, text.size());
}

/// The byte offset of the diagnostic's column; the line's length if the column is outside the line.
std::size_t byte_at_column(const Diagnostic& diagnostic) {
    const std::string_view line = diagnostic.source_line;
    std::size_t at = diagnostic.column < 1 ? line.size() : 0;
    for (int column = 1; column < diagnostic.column && at < line.size(); ++column)
        at += bytes_of_first(line.substr(at));
    return at;
}

/// Recognises placeholders that a Python template engine should have replaced: ${name}, %(name)s, {{name}}, {% if ...
/// %}; and {name} in a string that was meant to be an f-string, whose other braces are doubled.
std::string help_for_placeholder(const Diagnostic& diagnostic, const Source& source) {
    const auto is_blank = [](char c) { return c == ' '; };
    const std::string_view line = diagnostic.source_line;
    std::string_view before = line.substr(0, byte_at_column(diagnostic));
    const std::string_view here = line.substr(before.size());
    while (!before.empty() && is_blank(before.back())) before.remove_suffix(1);
    const auto name_end = std::ranges::find_if_not(here, continues_word);
    const std::string_view after(std::find_if_not(name_end, here.end(), is_blank), here.end());
    const bool is_name = name_end != here.begin();
    if (here.starts_with("${") || here.starts_with("{%") ||
        (is_name && before.ends_with("{{") && after.starts_with("}}")) ||
        (is_name && before.ends_with("%(") && after.size() > 1 && after[0] == ')' &&
         continues_word(after[1])))
        return "a placeholder is left in the text: fill it in before compiling.";
    const bool is_format = is_name && before.ends_with('{') && after.starts_with('}');
    return is_format && source.text.find("{{") != source.text.npos
               ? "a placeholder is left in the text: in Python, write f before the text's first quote."
               : "";
}

/// Recognises characters of word processors and web pages that look like those of C++.
std::string help_for_character(const Diagnostic& diagnostic) {
    struct Lookalike {
        std::string_view bytes, what;
    };
    static constexpr std::array lookalikes = {
        Lookalike{"\u00a0", "a no-break space (U+00A0): write a space"},
        Lookalike{"\u202f", "a narrow no-break space (U+202F): write a space"},
        Lookalike{"\u200b", "a space of no width (U+200B): remove it"},
        Lookalike{"\ufeff", "a byte order mark (U+FEFF): remove it"},
        Lookalike{"\u201c", "a typographic quote (U+201C): write \""},
        Lookalike{"\u201d", "a typographic quote (U+201D): write \""},
        Lookalike{"\u2018", "a typographic quote (U+2018): write '"},
        Lookalike{"\u2019", "a typographic quote (U+2019): write '"},
        Lookalike{"\u2013", "a dash (U+2013): write -"},
        Lookalike{"\u2212", "a minus sign (U+2212): write -"},
        Lookalike{"\u00d7", "a multiplication sign (U+00D7): write *"},
    };
    const bool is_token = diagnostic.message.starts_with("unrecognized token");
    if (!is_token && !diagnostic.message.starts_with("expected a file name")) return {};
    for (const Lookalike& each : lookalikes) {
        if (diagnostic.source_line.find(each.bytes) != std::string::npos) {
            return fmt::format("the line has {}.", each.what);
        }
    }
    const std::string_view there =
        std::string_view(diagnostic.source_line).substr(byte_at_column(diagnostic));
    if (!is_token || there.empty() || static_cast<unsigned char>(there[0]) < 0xc0) return {};
    return fmt::format("C++ has no {} outside of strings and comments.",
                       there.substr(0, bytes_of_first(there)));
}

std::string help_for_message(const Diagnostic& diagnostic, const Source& source) {
    const bool is_host_code =
        diagnostic.message.starts_with("A function without execution space annotations");
    if (is_host_code && diagnostic.file != source.name && diagnostic.file != canonical_name(source.text)) {
        const bool has_policy = source.text.find("thrust::seq") != source.text.npos ||
                                source.text.find("thrust::device,") != source.text.npos;
        const bool is_constant = diagnostic.source_line.find("constexpr") != std::string::npos;
        return std::string(has_policy    ? algorithms_help
                           : is_constant ? constexpr_help
                                         : header_of_host_code_help);
    }
    const auto fitting = std::ranges::find_if(by_message, [&](const MessageRow& row) {
        return diagnostic.message.find(row.message) != std::string::npos &&
               diagnostic.source_line.find(row.source_line) != std::string::npos;
    });
    return fitting == by_message.end() ? std::string() : std::string(fitting->help);
}

}  // namespace

std::string help_for(const Diagnostic& diagnostic, const Source& source) {
    if (const std::string header = missing_header(diagnostic.message); !header.empty())
        return help_for_header(header);
    if (std::string help = help_for_placeholder(diagnostic, source); !help.empty()) return help;
    if (const std::string name = unknown_name(diagnostic); !name.empty()) {
        return help_for_name(name, diagnostic, source);
    }
    if (const std::string header = header_for_incomplete(diagnostic.message); !header.empty()) {
        return fmt::format("#include <{}> for it.", header);
    }
    for (const std::string& help :
         {help_for_message(diagnostic, source), help_for_shared_memory(diagnostic.message),
          help_for_unresolved(diagnostic.message), help_for_semicolon(diagnostic),
          help_for_string(diagnostic, source), help_for_character(diagnostic)}) {
        if (!help.empty()) return help;
    }
    return {};
}

std::string help_for_directories(const std::vector<Diagnostic>& diagnostics, const CompileOptions& options) {
    const bool misses_header = std::ranges::any_of(
        diagnostics, [](const Diagnostic& each) { return !missing_header(each.message).empty(); });
    std::string text;
    for (const std::string& path : options.include_paths) {
        std::error_code error;
        if (!misses_header || std::filesystem::is_directory(path, error)) continue;
        const bool is_there = std::filesystem::exists(path, error);
        text += fmt::format("\nhelp: include_paths has {}, which {}.", path,
                            is_there ? "is not a directory" : "does not exist");
    }
    return text;
}

bool is_unclosed_string(const Diagnostic& diagnostic) {
    return diagnostic.message.starts_with("missing closing quote");
}

}  // namespace bascule
