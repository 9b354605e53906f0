// A loaded image: a CUlibrary and its kernels, loaded once for all contexts. Decides which code of an image a device can
// run, and explains refusals that versions cause.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/options/compile_options.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/streams/owner.hpp>

struct CUlib_st;
struct CUkern_st;

namespace bascule {

class Library;
struct DriverResult;
struct KernelNames;

/// The forms of code that an image may contain.
enum class CodeForm : std::uint8_t {
    cubin,  ///< machine code
    ptx,    ///< text that the driver compiles
};

/// Whether a device of architecture `device` runs code for `code` in this form. Machine code runs on the same or a
/// newer minor version of its major version, but a Tegra device runs only its own. PTX runs on the same and all newer
/// architectures. With the suffix `a`, both run only on that architecture; with `f`, only in its family.
bool runs_on(CodeForm form, Arch code, Arch device) noexcept;

/// Why a driver may refuse code of this NVRTC version, with advice on what to install. Empty if the versions are compatible.
std::string version_conflict(CudaVersion nvrtc, CudaVersion driver);

/// A sentence of advice after the driver refused code with the CUresult `refusal`. Empty if the result says enough.
/// `nvrtc` is the version of the NVRTC that compiled the code, for example "13.0"; `driver` is as in Driver::version.
std::string advice_for_refusal(int refusal, const std::string& nvrtc, int driver);

/// Whether the error log of the driver's assembler or linker contains more than warnings and notes, which drivers also
/// write about code that they accept.
bool names_an_error(std::string_view log) noexcept;

/// One kernel, ready to launch. A value that borrows from its Library.
struct LoadedKernel {
    const Library* library = nullptr;
    CUkern_st* native = nullptr;
    const KernelImage* image = nullptr;  ///< name and signature
    const KernelNames* names = nullptr;
    LaunchLimits limits;  ///< on the device that it was loaded for
    int registers = 0;    ///< per thread
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;  ///< per thread
};

/// A __device__ or __constant__ variable of a Library, which owns its memory.
struct LoadedVariable {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool is_constant = false;  ///< a `__constant__` variable
};

/// Owns a CUlibrary and keeps its image. Immutable; any thread may use it. Destroying it destroys its kernels and variables.
class Library {
  public:
    /// Loads the cubin if the device's architecture runs it, else the PTX. If the driver refuses the cubin, tries the
    /// PTX once. Throws: CudaError with the first refusal, the driver's log, and advice if versions are the reason.
    Library(std::shared_ptr<const Image> image, Device device);
    ~Library();  // never throws
    Library(Library&&) = delete;

    /// Loads a library. When its last owner releases it, it is unloaded after all operations issued so far have finished.
    static std::shared_ptr<const Library> load(std::shared_ptr<const Image> image, Device device);

    const Image& image() const noexcept { return *image_; }
    /// The reference that launches of its kernels keep. Empty if the library was not made by `load`.
    const CodeRef& code() const noexcept { return code_; }
    /// Whether another device can use this library, too.
    bool serves(Device device) const noexcept;
    double load_milliseconds() const noexcept { return load_milliseconds_; }

    /// Loads a kernel on a device, so that the first launch has nothing left to load. Opts in to all shared memory that
    /// the kernel's static arrays leave, if that is more than 48 KB, so that a launch may use all of
    /// `limits.shared_bytes`. Throws: CudaError if the driver refuses the kernel (the emulated device names the PTX
    /// line).
    std::unique_ptr<const LoadedKernel> load(const KernelImage& kernel, Device device) const;

    /// A variable of the image on a device. Each device has its own copy, and so has each Library, unless
    /// ModuleVariables gave the image another library's address. Initialized at first use. Empty if the image has no
    /// variable of that name. Throws: CudaError.
    std::optional<LoadedVariable> variable(const std::string& lowered_name, Device device) const;

  private:
    struct JitLog;
    void fail_to_load(DriverResult first, DriverResult last, Device device) const;

    CUlib_st* native_ = nullptr;
    CodeForm form_{};
    std::shared_ptr<const Image> image_;
    CodeRef code_;
    double load_milliseconds_ = 0;
    std::uint32_t bounds_number_ = 0;  // identifies the image's parameters in bounds reports; 0: no checks
    std::unique_ptr<JitLog> log_;      // the driver writes to it, also when it compiles lazily
    bool unknown_stack_;               ///< of any function: see has_unknown_stack
};

}  // namespace bascule
