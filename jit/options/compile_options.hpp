// The options of a compile, and the architecture to compile for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bascule {

/// A real (sm_90a: a cubin and its PTX) or virtual (compute_80: only PTX) architecture. A value that does not depend on
/// the devices of this machine, so that one can compile for others.
struct Arch {
    int major = 8, minor = 0;
    char suffix = '\0';  ///< 'a', 'f' or none
    bool is_virtual = false;

    bool operator==(const Arch&) const = default;
};

/// "sm_90a", "compute_80".
std::string to_string(Arch arch);
/// Throws: ArgumentError (value) that shows the expected form.
Arch parse_arch(std::string_view text);

/// The options of a compile. All members except `pch` are part of the cache key. Each has a row in option_table.hpp.
struct CompileOptions {
    std::string std = "c++17";  ///< c++17 (c++11 and c++14 mean it too), c++20, from NVRTC 13.3 on c++23
    std::vector<std::pair<std::string, std::string>> defines;  ///< -DNAME=VALUE; an empty value is -DNAME
    std::vector<std::string> include_paths;  ///< relative paths begin at the working directory
    std::vector<std::pair<std::string, std::string>> headers;  ///< name -> text, found by #include "name"
    bool lineinfo = false;                                     ///< always on for the emulated device
    bool debug = false;                                        ///< -G
    bool fast_math = false;
    /// Registers that a thread may use, 1 to 255; more are spilled to memory. Nothing: the compiler decides.
    std::optional<int> max_registers;
    /// Whether to precompile headers for later compiles of this process: at the first compile that uses them (true), at
    /// the second one (nothing), or never (false). The image is the same.
    std::optional<bool> pch;
    /// A directory in which the text is stored as a file. The line information of the image names that file, so that
    /// debuggers and profilers show it. Turns `lineinfo` on. Empty: no file; Module then uses BASCULE_KEEP_SOURCES.
    std::string keep_sources;
    std::vector<std::string> extra;  ///< passed to NVRTC as they are, one option per element
    std::optional<Arch> arch;        ///< nothing: that of the device

    bool operator==(const CompileOptions&) const = default;
};

/// The options for NVRTC, except the architecture and the toolkit's include paths. Throws: ArgumentError with the field.
std::vector<std::string> to_arguments(const CompileOptions& options);

/// Whether an extra option asks for code to be linked: `-rdc=true`, `--relocatable-device-code=true` and their other forms.
bool is_relocatable(const CompileOptions& options) noexcept;

}  // namespace bascule
