// What is compiled, how, and for which architecture: values that make up a compile's identity.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bascule {

/// CUDA C++ text. A value: it owns its text, and nothing is read from anywhere when it is made. `name` and
/// `first_line` are for people, never for the compiler: they place errors in the user's own file.
struct Source {
    std::string text;
    std::string name = "<string>";  ///< "kernels.cu", "train.py"
    int first_line = 1;             ///< of the text in `name`
    std::string directory;          ///< searched first for quoted includes; empty for a string
};

/// Reads a file. Throws: Error naming the path and the system's reason.
Source read_source(const std::string& path);

/// A real (sm_90a: a cubin and its PTX) or virtual (compute_80: PTX alone) architecture. A value: which
/// devices there are does not matter, so that one can compile for a machine that is elsewhere.
struct Arch {
    int major = 8, minor = 0;
    char suffix = '\0';  ///< 'a', 'f' or none
    bool is_virtual = false;

    bool operator==(const Arch&) const = default;
};

/// "sm_90a", "compute_80".
std::string to_string(Arch arch);
/// Throws: ArgumentError (value) that shows the form.
Arch parse_arch(std::string_view text);

/// How a text is compiled. Everything here but `pch` is part of the cache key, in this order.
struct CompileOptions {
    std::string std = "c++17";  ///< c++17 (also c++11, c++14), c++20, from NVRTC 13.3 on c++23
    std::vector<std::pair<std::string, std::string>> defines;  ///< -DNAME=VALUE; an empty value is -DNAME
    std::vector<std::string> include_paths;  ///< relative ones count from the directory of the process
    std::vector<std::pair<std::string, std::string>> headers;  ///< name -> text, found by #include "name"
    bool lineinfo = false;                                     ///< always on for the emulated device
    bool debug = false;                                        ///< -G
    bool fast_math = false;
    /// Registers that a thread may use; more is spilled to memory. None: the compiler's choice.
    std::optional<int> max_registers;
    /// Whether headers are precompiled for other compiles of this process: from the first compile of a header on
    /// (true), from the second one on (none), or never (false). The image is the same.
    std::optional<bool> pch;
    /// A directory where the text is written to a file, which the lines of the image then name, so that debuggers and
    /// profilers show it. Turns `lineinfo` on. Empty: no file; Module takes BASCULE_KEEP_SOURCES then.
    std::string keep_sources;
    std::vector<std::string> extra;  ///< passed to NVRTC as they are, one option an element
    std::optional<Arch> arch;        ///< none: the device's

    bool operator==(const CompileOptions&) const = default;
};

/// Options as NVRTC takes them, without architecture and include paths of the toolkit.
/// Throws: ArgumentError that names the field and what it takes.
std::vector<std::string> to_arguments(const CompileOptions& options);

/// The name under which a text is compiled: the same text is the same program wherever it came from.
std::string canonical_name(const std::string& text);
/// The same, or the file in `keep_sources`: the lines of the image name it.
std::string program_name(const Source& source, const CompileOptions& options);

/// Line number `line` of the text, from 1; without its end.
std::string_view source_line_of(std::string_view text, int line);
/// Where in the text the line is that a compiler calls `line`: another than that one behind a `#line 100`.
int line_in_text(std::string_view text, int line);

}  // namespace bascule
