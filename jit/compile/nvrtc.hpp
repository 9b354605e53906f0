// NVRTC at run time: where it is, its functions, and a program that owns its handle.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <bascule/jit/compile/nvrtc_choice.hpp>
#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Where NVRTC and the CUDA headers are looked for. Filled in by the layer that knows the installation (Python: from
/// the wheels).
struct ToolkitLocation {
    /// Paths or sonames, of which the driver's choice is taken (nvrtc_choice.hpp). Empty: in this order what CUDA_HOME
    /// and CUDA_PATH name, the active environment (VIRTUAL_ENV, CONDA_PREFIX), the program's own directories and those
    /// that it was linked to search (for a Python package, the wheels beside it), /usr/local/cuda, the loader's path.
    std::vector<std::string> nvrtc_libraries;
    /// Directories of cuda_fp16.h and CCCL. Empty: those beside the library that was loaded, then those of a toolkit of
    /// exactly its version.
    std::vector<std::string> include_paths;
    /// Whether those are directories of an installed toolkit or wheel, found as such, and not named by a
    /// person, who may edit their files.
    bool found_include_paths = false;

    bool operator==(const ToolkitLocation&) const = default;
};

/// One loaded NVRTC. Thread-safe; programs keep it alive.
class Nvrtc {
  public:
    /// Throws: LibraryError when no candidate loads or one lacks a function that every version since 12.0
    /// has.
    explicit Nvrtc(const ToolkitLocation& location, const DriverLimit& limit = {});
    ~Nvrtc();

    using Version = CudaVersion;
    Version version() const noexcept;
    const std::string& path() const noexcept { return library_.path(); }  ///< of the library
    /// Version, and which build of the library and of its builtins this is: programs compiled by two NVRTCs
    /// of equal identity are the same. Empty when the build cannot be identified.
    const std::string& identity() const noexcept { return identity_; }
    /// That exist, in order.
    const std::vector<std::string>& include_paths() const noexcept { return include_paths_; }
    /// The user did not name them: they are an installation's.
    bool found_include_paths() const noexcept { return found_include_paths_; }
    const std::vector<int>& supported_archs() const noexcept;  ///< 75, 80, ...
    /// What to compile for a device of this architecture: itself, or where this NVRTC is older than the device, PTX of
    /// the newest one that it knows. An architecture that it no longer knows stays, and fails to compile.
    Arch nearest(Arch device) const;

    /// Whether it has the options -create-pch and -use-pch: 12.8 and newer.
    bool has_precompiled_headers() const noexcept;
    /// Before the first use of them: NVRTC's own 256 MiB are too few for CUB. Throws: LibraryError.
    void enlarge_precompiled_header_heap() const;

    /// What one compile gave, right or wrong.
    struct Result {
        bool succeeded = false;
        bool bad_option = false;  ///< NVRTC refused an option; `log` says which
        std::string log;
        std::string ptx;
        std::string cubin;                       ///< empty for a virtual architecture
        std::vector<std::string> lowered_names;  ///< one a name expression
        double milliseconds = 0;
    };
    struct Header {
        std::string name, text;
    };

    /// Runs NVRTC once. Blocking; call it without any lock of ours. SIGINT and SIGTERM handlers are as before
    /// when it returns. Throws: LibraryError when NVRTC itself fails (out of memory, internal error).
    Result compile(const std::string& text, const std::string& program_name, std::span<const Header> headers,
                   std::span<const std::string> options, std::span<const std::string> name_expressions) const;

    /// Calls of nvrtcCompileProgram in this process, by every Nvrtc.
    static std::uint64_t compile_calls() noexcept;
    /// While true, calls of nvrtcCompileProgram wait before they begin.
    static void hold_compiles(bool hold) noexcept;

  private:
    struct Functions;
    DynamicLibrary library_;
    std::unique_ptr<Functions> functions_;
    std::vector<std::string> include_paths_;
    bool found_include_paths_ = false;
    std::string identity_;
};

}  // namespace bascule
