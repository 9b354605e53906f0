// Loads the CUDA driver's functions at run time, from the real driver or the emulated device. No other file
// names libcuda.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>
#include <cudaTypedefs.h>

namespace bascule {

// Each row: the function's name, the version of its typedef in <cudaTypedefs.h>, and its CallMode.
#define BASCULE_DRIVER_FUNCTIONS(FUNCTION)                    \
    FUNCTION(cuInit, 2000, plain)                             \
    FUNCTION(cuDriverGetVersion, 2020, plain)                 \
    FUNCTION(cuGetErrorName, 6000, plain)                     \
    FUNCTION(cuGetErrorString, 6000, plain)                   \
    FUNCTION(cuDeviceGet, 2000, plain)                        \
    FUNCTION(cuDeviceGetCount, 2000, plain)                   \
    FUNCTION(cuDeviceGetName, 2000, plain)                    \
    FUNCTION(cuDeviceGetAttribute, 2000, plain)               \
    FUNCTION(cuDeviceTotalMem, 3020, plain)                   \
    FUNCTION(cuDevicePrimaryCtxRetain, 7000, plain)           \
    FUNCTION(cuDevicePrimaryCtxGetState, 7000, plain)         \
    FUNCTION(cuCtxGetCurrent, 4000, plain)                    \
    FUNCTION(cuCtxSetCurrent, 4000, plain)                    \
    FUNCTION(cuCtxGetDevice, 2000, plain)                     \
    FUNCTION(cuCtxSynchronize, 2000, plain)                   \
    FUNCTION(cuLinkCreate, 6050, relaxed)                     \
    FUNCTION(cuLinkAddData, 6050, relaxed)                    \
    FUNCTION(cuLinkComplete, 5050, relaxed)                   \
    FUNCTION(cuLinkDestroy, 5050, relaxed)                    \
    FUNCTION(cuLibraryLoadData, 12000, relaxed)               \
    FUNCTION(cuLibraryUnload, 12000, relaxed)                 \
    FUNCTION(cuLibraryGetKernel, 12000, relaxed)              \
    FUNCTION(cuLibraryGetGlobal, 12000, relaxed)              \
    FUNCTION(cuKernelGetFunction, 12000, relaxed)             \
    FUNCTION(cuKernelGetAttribute, 12000, relaxed)            \
    FUNCTION(cuKernelSetAttribute, 12000, relaxed)            \
    FUNCTION(cuKernelSetCacheConfig, 12000, relaxed)          \
    FUNCTION(cuLaunchKernelEx, 11060, plain)                  \
    FUNCTION(cuLaunchHostFunc, 10000, plain)                  \
    FUNCTION(cuOccupancyMaxPotentialBlockSize, 6050, relaxed) \
    FUNCTION(cuMemAlloc, 3020, relaxed)                       \
    FUNCTION(cuMemAllocManaged, 6000, relaxed)                \
    FUNCTION(cuMemFree, 3020, relaxed)                        \
    FUNCTION(cuMemGetInfo, 3020, plain)                       \
    FUNCTION(cuMemPoolCreate, 11020, relaxed)                 \
    FUNCTION(cuMemPoolSetAttribute, 11020, relaxed)           \
    FUNCTION(cuMemPoolGetAttribute, 11020, relaxed)           \
    FUNCTION(cuMemPoolSetAccess, 11020, relaxed)              \
    FUNCTION(cuMemPoolTrimTo, 11020, relaxed)                 \
    FUNCTION(cuMemAllocFromPoolAsync, 11020, relaxed)         \
    FUNCTION(cuMemFreeAsync, 11020, relaxed)                  \
    FUNCTION(cuMemHostAlloc, 2020, relaxed)                   \
    FUNCTION(cuMemFreeHost, 2000, relaxed)                    \
    FUNCTION(cuMemcpyHtoDAsync, 3020, plain)                  \
    FUNCTION(cuMemcpyDtoHAsync, 3020, plain)                  \
    FUNCTION(cuMemcpyDtoDAsync, 3020, plain)                  \
    FUNCTION(cuMemcpyPeerAsync, 4000, plain)                  \
    FUNCTION(cuMemsetD8Async, 3020, plain)                    \
    FUNCTION(cuMemsetD16Async, 3020, plain)                   \
    FUNCTION(cuMemsetD32Async, 3020, plain)                   \
    FUNCTION(cuPointerGetAttributes, 7000, plain)             \
    FUNCTION(cuMemcpy3DAsync, 3020, plain)                    \
    FUNCTION(cuArray3DCreate, 3020, relaxed)                  \
    FUNCTION(cuArrayDestroy, 2000, relaxed)                   \
    FUNCTION(cuTexObjectCreate, 5000, relaxed)                \
    FUNCTION(cuTexObjectDestroy, 5000, relaxed)               \
    FUNCTION(cuSurfObjectCreate, 5000, relaxed)               \
    FUNCTION(cuSurfObjectDestroy, 5000, relaxed)              \
    FUNCTION(cuStreamCreateWithPriority, 5050, plain)         \
    FUNCTION(cuStreamDestroy, 4000, plain)                    \
    FUNCTION(cuStreamSynchronize, 2000, relaxed)              \
    FUNCTION(cuStreamQuery, 2000, relaxed)                    \
    FUNCTION(cuStreamWaitEvent, 3020, plain)                  \
    FUNCTION(cuStreamGetCtx, 9020, plain)                     \
    FUNCTION(cuStreamGetPriority, 5050, plain)                \
    FUNCTION(cuCtxGetStreamPriorityRange, 5050, plain)        \
    FUNCTION(cuCtxGetLimit, 3010, plain)                      \
    FUNCTION(cuCtxSetLimit, 3010, relaxed)                    \
    FUNCTION(cuDeviceCanAccessPeer, 4000, plain)              \
    FUNCTION(cuCtxEnablePeerAccess, 4000, plain)              \
    FUNCTION(cuStreamIsCapturing, 10000, plain)               \
    FUNCTION(cuStreamGetCaptureInfo, 11030, plain)            \
    FUNCTION(cuStreamBeginCapture, 10010, plain)              \
    FUNCTION(cuStreamEndCapture, 10000, plain)                \
    FUNCTION(cuStreamUpdateCaptureDependencies, 11030, plain) \
    FUNCTION(cuThreadExchangeStreamCaptureMode, 10010, plain) \
    FUNCTION(cuEventCreate, 2000, plain)                      \
    FUNCTION(cuEventDestroy, 4000, plain)                     \
    FUNCTION(cuEventRecord, 2000, plain)                      \
    FUNCTION(cuEventQuery, 2000, relaxed)                     \
    FUNCTION(cuEventSynchronize, 2000, relaxed)               \
    FUNCTION(cuEventElapsedTime, 2000, plain)                 \
    FUNCTION(cuGraphDestroy, 10000, plain)                    \
    FUNCTION(cuGraphGetNodes, 10000, plain)                   \
    FUNCTION(cuGraphAddChildGraphNode, 10000, plain)          \
    FUNCTION(cuGraphInstantiateWithFlags, 11040, relaxed)     \
    FUNCTION(cuGraphExecUpdate, 12000, plain)                 \
    FUNCTION(cuGraphExecDestroy, 10000, relaxed)              \
    FUNCTION(cuGraphLaunch, 10000, plain)                     \
    FUNCTION(cuUserObjectCreate, 11030, plain)                \
    FUNCTION(cuUserObjectRelease, 11030, relaxed)             \
    FUNCTION(cuGraphRetainUserObject, 11030, plain)           \
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, relaxed)

// Functions of newer drivers and headers, and of newer devices, in the same form. Null if the driver lacks them.
#if CUDA_VERSION >= 12040
#define BASCULE_FUNCTIONS_SINCE_12_4(FUNCTION) \
    FUNCTION(cuKernelGetParamInfo, 12040, relaxed) FUNCTION(cuFuncLoad, 12040, relaxed)
#else
#define BASCULE_FUNCTIONS_SINCE_12_4(FUNCTION)
#endif
#if CUDA_VERSION >= 12050
#define BASCULE_FUNCTIONS_SINCE_12_5(FUNCTION) FUNCTION(cuCtxRecordEvent, 12050, plain)
#else
#define BASCULE_FUNCTIONS_SINCE_12_5(FUNCTION)
#endif
#if CUDA_VERSION >= 13020
#define BASCULE_FUNCTIONS_SINCE_13_2(FUNCTION) FUNCTION(cuKernelGetParamCount, 13020, relaxed)
#else
#define BASCULE_FUNCTIONS_SINCE_13_2(FUNCTION)
#endif
#define BASCULE_OPTIONAL_DRIVER_FUNCTIONS(FUNCTION) \
    FUNCTION(cuTensorMapEncodeTiled, 12000, plain)  \
    FUNCTION(cuTensorMapEncodeIm2col, 12000, plain) \
    BASCULE_FUNCTIONS_SINCE_12_4(FUNCTION)          \
    BASCULE_FUNCTIONS_SINCE_12_5(FUNCTION)          \
    BASCULE_FUNCTIONS_SINCE_13_2(FUNCTION)

/// What a driver function returned, together with the function's name.
struct DriverResult {
    CUresult code = CUDA_SUCCESS;
    const char* call = "";

    operator CUresult() const noexcept { return code; }
};

/// A function name that can be a template argument.
template <std::size_t length>
struct FunctionName {
    char text[length];
    consteval FunctionName(const char (&name)[length]) { std::copy_n(name, length, text); }
};

/// While an object lives, the calling thread may call functions that a stream capture of another library forbids.
/// Outside the relaxed mode they fail and invalidate a capture that this thread began in the thread-local mode, or that
/// any thread began in the global mode. Objects nest: the outermost one sets the mode and restores it. The function
/// table does this around each forbidden function. A caller needs its own object only to save mode changes around
/// several calls.
class RelaxedCapture {
  public:
    RelaxedCapture() noexcept {
        if (depth()++ == 0) exchange();
    }
    ~RelaxedCapture() {
        if (--depth() == 0) exchange();
    }
    RelaxedCapture(RelaxedCapture&&) = delete;

  private:
    void exchange() noexcept;
    static int& depth() noexcept {
        thread_local constinit int objects_of_this_thread = 0;
        return objects_of_this_thread;
    }

    CUstreamCaptureMode other_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // afterwards the thread's own mode
};

/// The capture mode in which a function is called. Functions are called in the relaxed mode for one of three reasons: captures forbid them; no run of
/// tests/gpu/captures.py has shown that captures allow them; or they load code, which newer drivers allow during a capture
/// and older ones may not. Work on a capturing stream is still captured in that mode, and a query about a capturing
/// stream or event still fails. cuCtxSynchronize and cuCtxRecordEvent are called plainly, because they invalidate captures
/// in every mode.
enum class CallMode : std::uint8_t { plain, relaxed };

template <class Pointer, FunctionName name, CallMode mode>
struct DriverFunction;

/// A driver function that knows its name, so that error checks need not repeat it, and its mode, so that callers need not
/// care about captures.
template <class... Parameters, FunctionName name, CallMode mode>
struct DriverFunction<CUresult (*)(Parameters...), name, mode> {
    CUresult (*pointer)(Parameters...) = nullptr;

    DriverResult operator()(Parameters... arguments) const {
        if constexpr (mode == CallMode::relaxed) {
            const RelaxedCapture relaxed;
            return result(pointer(arguments...));
        } else {
            return result(pointer(arguments...));
        }
    }
    static DriverResult result(CUresult code) noexcept { return {code, name.text}; }
    explicit operator bool() const noexcept { return pointer != nullptr; }
};

/// The function table. After a Driver is made, only the optional functions may be null.
struct DriverFunctions {
#define BASCULE_DECLARE(name, version, mode) \
    DriverFunction<PFN_##name##_v##version, #name, CallMode::mode> name;
    BASCULE_DRIVER_FUNCTIONS(BASCULE_DECLARE)
    BASCULE_OPTIONAL_DRIVER_FUNCTIONS(BASCULE_DECLARE)
#undef BASCULE_DECLARE
};

/// True for errors of a kernel after which all later calls in the context return the same error.
bool is_fault_of_kernel(CUresult code) noexcept;
/// True for all errors that lose the context: those of kernels, of the device, and of its connection to the process.
bool loses_context(CUresult code) noexcept;

/// Paths of the real driver, in the order in which they are tried.
std::vector<std::string> cuda_driver_candidates();

/// The value of BASCULE_DEVICE: "cuda", "emulated" or "auto" (the default).
enum class DeviceChoice : std::uint8_t { automatic, cuda, emulated };

struct EmulatedFunctions;  // declared in emulated_device.hpp

class Driver;

/// What the message of a CudaError contains in addition to the driver's description.
struct FailureDetails {
    std::string report;  ///< what happened on the device, with the user's source lines
    std::string launch;  ///< which launch caused it
};

/// Describes a failure. `report` is the emulated device's report; empty on a GPU.
using FailureDescriber = FailureDetails (*)(const Driver&, CUresult code, std::string report);

/// The stream's name in messages: "the legacy default stream", "the per-thread default stream", "stream 0x55d0c8".
std::string name_of_stream(std::uint64_t handle);
/// The stream's name after an error, when the stream may have been destroyed.
std::string doubtful_name_of_stream(std::uint64_t handle);

/// The process's one driver, chosen and initialised at first use, never unloaded. Thread-safe.
class Driver {
  public:
    /// Throws: LibraryError if the requested driver cannot be loaded; CudaError if it does not initialise; Error if
    /// BASCULE_DEVICE is not one of the three values. The next call after a failure tries again.
    static const Driver& get() {
        const Driver* made = existing();
        return made != nullptr ? *made : make();
    }
    /// The driver if it has been made, else null. For destructors.
    static const Driver* existing() noexcept { return the_one.load(std::memory_order_acquire); }

    /// True if this process was forked from one that had made a driver. It then has no driver and cannot make one, and
    /// locks may be held by threads that do not exist here.
    static bool lost_by_fork() noexcept { return forked.load(std::memory_order_relaxed); }

    const DriverFunctions& api() const noexcept { return api_; }
    bool emulated() const noexcept { return emulated_ != nullptr; }
    /// The emulated device's own functions, or null on a GPU.
    const EmulatedFunctions* emulated_functions() const noexcept { return emulated_; }
    /// The emulated device's own functions. Throws: LibraryError with the text `why_not` on a GPU.
    const EmulatedFunctions& require_emulated(const char* why_not) const;
    /// Why `auto` chose the emulated device: "no libcuda.so.1 was found". Empty if it was requested, and on a GPU.
    const std::string& fallback_reason() const noexcept { return fallback_reason_; }
    const std::string& path() const noexcept { return path_; }
    int version() const noexcept { return version_; }  ///< for example 13000
    int device_count() const noexcept { return device_count_; }

    /// Throws CudaError unless `result` is success. `doing` begins the message: "launching kernel 'scale'".
    void check(DriverResult result, std::string_view doing) const {
        if (result != CUDA_SUCCESS) [[unlikely]]
            fail(result, doing);
    }

    /// The same for a call on a stream, which the message names: "launching kernel 'scale' on stream 0x55d0c8".
    void check(DriverResult result, CUstream stream, std::string_view doing) const {
        if (result != CUDA_SUCCESS) [[unlikely]]
            fail(result, stream, doing);
    }

    /// Throws: CudaError with this code, and `message` in place of the driver's description.
    [[noreturn]] void fail_as(CUresult code, const std::string& message, const char* doing = "") const;

    /// Returns a device attribute. `ordinal` is less than `device_count()`. Throws: CudaError.
    int attribute_of(int ordinal, CUdevice_attribute which) const;
    /// Returns an attribute of a kernel on one device. Throws: CudaError.
    int attribute_of(CUkernel kernel, int ordinal, CUfunction_attribute which) const;
    /// Queries one attribute of an address. The type of `*value` depends on the attribute.
    DriverResult ask_pointer(CUdeviceptr address, CUpointer_attribute which, void* value) const {
        return api_.cuPointerGetAttributes(1, &which, &value, address);
    }
    /// Returns a CUmemorytype, or 0 for memory that the driver does not know, such as pageable memory.
    unsigned int memory_type_of(const void* host) const noexcept;

    /// Sets the function that describes failures. Without one, errors contain only the emulated device's report.
    /// Thread-safe.
    static void set_failure_describer(FailureDescriber describe) noexcept {
        failure_describer.store(describe, std::memory_order_release);
    }

    /// For destructors: writes a failure to stderr. Writes nothing if the process is ending, or if the context is lost,
    /// because that has been reported.
    void report(DriverResult result, const char* doing) const noexcept;

  private:
    Driver() = default;
    static const Driver& make();
    const char* name_of(CUresult code) const noexcept;
    std::string report_on(DriverResult result) const;
    std::string message_of(DriverResult result, std::string_view doing, const FailureDetails& failure) const;
    [[noreturn]] void fail(DriverResult result, std::string_view doing) const;
    [[noreturn]] void fail(DriverResult result, CUstream stream, std::string_view doing) const;
    friend struct DriverLoader;

    static std::atomic<bool> forked;
    static std::atomic<FailureDescriber> failure_describer;
    static std::atomic<const Driver*> the_one;  // never destroyed, because destructors at exit need it

    DriverFunctions api_;
    const EmulatedFunctions* emulated_ = nullptr;
    std::string fallback_reason_;
    std::string path_;
    int version_ = 0;
    int device_count_ = 0;
};

inline void RelaxedCapture::exchange() noexcept {
    if (const Driver* driver = Driver::existing())
        driver->api().cuThreadExchangeStreamCaptureMode(&other_mode_);
}

}  // namespace bascule
