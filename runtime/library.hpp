// An image in the driver: CUlibrary and its kernels, loaded once for every context.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <bascule/interface/launch_config.hpp>
#include <bascule/jit/image.hpp>
#include <bascule/runtime/device.hpp>

struct CUlib_st;
struct CUkern_st;

namespace bascule {

class Library;

/// One kernel, ready to launch. Owned by its Library.
struct LoadedKernel {
    CUkern_st* native = nullptr;
    const KernelImage* image = nullptr;  ///< name and signature
    LaunchLimits limits;                 ///< on the device it was looked up for
    int registers = 0;                   ///< a thread
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;  ///< a thread
};

/// A CUlibrary that this object owns; it keeps its image. Immutable once made, thread-safe.
class Library {
  public:
    /// Loads the cubin where there is one, else the PTX. Throws: CudaError with the driver's log.
    Library(std::shared_ptr<const Image> image, Device device);
    ~Library();  // never throws
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const Image& image() const noexcept { return *image_; }
    double load_milliseconds() const noexcept { return load_milliseconds_; }

    /// A kernel of the image; dynamic shared memory above 48 KB is opted in already.
    /// Throws: CudaError when the driver refuses this kernel (the emulated device says which PTX line).
    std::unique_ptr<const LoadedKernel> load(const KernelImage& kernel, Device device) const;

  private:
    CUlib_st* native_ = nullptr;
    std::shared_ptr<const Image> image_;
    double load_milliseconds_ = 0;
    std::unique_ptr<char[]> log_;  // where the driver writes, also when it compiles lazily
};

}  // namespace bascule
