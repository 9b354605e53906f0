// An image in the driver: CUlibrary and its kernels, loaded once for every context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/kernels/code_choice.hpp>
#include <bascule/runtime/streams/owner.hpp>

struct CUlib_st;
struct CUkern_st;

namespace bascule {

class Library;
struct DriverResult;
struct KernelNames;

/// One kernel, ready to launch. A value that borrows from its Library: keep that as long as this.
struct LoadedKernel {
    const Library* library = nullptr;
    CUkern_st* native = nullptr;
    const KernelImage* image = nullptr;  ///< name and signature
    const KernelNames* names = nullptr;
    LaunchLimits limits;  ///< on the device it was looked up for
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

/// A CUlibrary that this object owns; it keeps its image. Immutable once made; any thread may use it. Its
/// kernels and variables are gone with it.
class Library {
  public:
    /// Loads the cubin where there is one that the device's architecture runs, else the PTX. Where the driver refuses the
    /// cubin, for whatever reason, the PTX is tried once. Throws: CudaError with the first refusal, the driver's log, and
    /// the cure where versions are the reason.
    Library(std::shared_ptr<const Image> image, Device device);
    ~Library();  // never throws
    Library(Library&&) = delete;

    /// Loads one that its last owner unloads when the operations have finished that were issued until then.
    static std::shared_ptr<const Library> load(std::shared_ptr<const Image> image, Device device);

    const Image& image() const noexcept { return *image_; }
    /// What launches of its kernels use; empty where it is not shared.
    const CodeRef& code() const noexcept { return code_; }
    /// Whether another device runs what was loaded for this one.
    bool serves(Device device) const noexcept;
    double load_milliseconds() const noexcept { return load_milliseconds_; }

    /// A kernel of the image on a device. The shared memory that the kernel's own leaves is opted in where that is
    /// above 48 KB, so that a launch may use all of `limits.shared_bytes`. Nothing is left for the first launch to load.
    /// Throws: CudaError when the driver refuses this kernel (the emulated device says which PTX line).
    std::unique_ptr<const LoadedKernel> load(const KernelImage& kernel, Device device) const;

    /// A variable of the image on a device: each device has its own copy, and so has each Library of an image that
    /// ModuleVariables did not give another's address. It is initialised when it is first needed. None when the image has no variable of that name. Throws: CudaError.
    std::optional<LoadedVariable> variable(const std::string& lowered_name, Device device) const;

  private:
    struct JitLog;
    void fail_to_load(DriverResult first, DriverResult last, Device device) const;

    CUlib_st* native_ = nullptr;
    CodeForm form_ = CodeForm::ptx;
    std::shared_ptr<const Image> image_;
    CodeRef code_;
    double load_milliseconds_ = 0;
    std::uint32_t bounds_number_ = 0;  // under which the image's parameters are remembered; 0: no checks
    std::unique_ptr<JitLog> log_;      // the driver writes to it, also when it compiles lazily
    bool unknown_stack_;               ///< of some function: see has_unknown_stack
};

}  // namespace bascule
