// NVRTC at run time: the search for the library, its functions, and compiles.
#pragma once

#include <memory>
#include <span>

#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/options/cache_settings.hpp>
#include <bascule/jit/options/compile_options.hpp>
#include <bascule/jit/process/dynamic_library.hpp>

namespace bascule {

/// A loaded NVRTC. Thread-safe. The library stays loaded when this object is destroyed.
class Nvrtc {
  public:
    /// Throws: LibraryError when no candidate loads, or when it lacks a function that all versions since 12.0 have.
    explicit Nvrtc(const ToolkitLocation& location, const DriverLimit& limit = {});
    ~Nvrtc();

    using Version = CudaVersion;
    Version version() const noexcept;
    const std::string& path() const noexcept { return library_.path(); }  ///< of the library
    /// The version, and the builds of the library and its builtins. NVRTCs with equal identities compile to the same
    /// code. Empty if the build cannot be identified.
    const std::string& identity() const noexcept { return identity_; }
    /// The existing directories of headers, in the order of the search.
    const std::vector<std::string>& include_paths() const noexcept { return include_paths_; }
    /// Whether the include paths belong to an installation; false if the user named them.
    bool found_include_paths() const noexcept { return found_include_paths_; }
    const std::vector<int>& supported_archs() const noexcept;  ///< 75, 80, ...
    /// The architecture to compile for on this device: the device's, or, if this NVRTC is too old for it, PTX of the
    /// newest one that it knows. An architecture that it no longer supports is returned as it is, and fails to compile.
    Arch nearest(Arch device) const;
    /// The target of code for exactly this device, which also has the device's own instructions: `nearest`, with the suffix `a` for
    /// machine code from compute capability 9.0 on. Every NVRTC that knows such an architecture has that target, though
    /// nvrtcGetSupportedArchs does not list it.
    Arch own_target(Arch device) const;

    /// Whether it has the options -create-pch and -use-pch: 12.8 and newer.
    bool has_precompiled_headers() const noexcept;
    /// Call this before the first use of precompiled headers: NVRTC's default heap of 256 MiB is too small for CUB.
    /// Throws: LibraryError.
    void enlarge_precompiled_header_heap() const;

    /// The result of one compile, successful or not.
    struct Result {
        bool succeeded = false;
        bool bad_option = false;  ///< NVRTC refused an option; `log` says which
        std::string log;
        std::string ptx;
        std::string cubin;                       ///< empty for a virtual architecture
        std::vector<std::string> lowered_names;  ///< one for each name expression
        double milliseconds = 0;
    };
    struct Header {
        std::string name, text;
    };

    /// Runs NVRTC once. Blocks; the caller must not hold a lock. Restores the handlers of SIGINT and SIGTERM. Throws:
    /// LibraryError when NVRTC itself fails (out of memory, internal error).
    Result run(const std::string& text, const std::string& program_name, std::span<const Header> headers,
               std::span<const std::string> options, std::span<const std::string> name_expressions) const;

    /// Number of calls of nvrtcCompileProgram in this process, by all Nvrtc objects.
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
