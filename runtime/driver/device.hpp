// Devices and their primary contexts.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/options/compile_options.hpp>

struct CUctx_st;

namespace bascule {

/// Devices beyond this many are ignored.
inline constexpr int max_devices = 64;

/// An attribute of a device, by its name in the driver API: `clock_rate` for CU_DEVICE_ATTRIBUTE_CLOCK_RATE.
struct DeviceAttribute {
    std::string_view name;
    int value;
};

/// One device, used through its primary context. Creating a Device and querying its attributes creates no context: a
/// context takes some 0.5 GB of device memory and 0.3 s, and creating one fails if another process has the device in
/// exclusive mode. A small value; thread-safe.
class Device {
  public:
    /// Throws: ArgumentError for an ordinal that does not exist; CudaError.
    explicit Device(int ordinal);
    /// The device of the thread's current context, which another library may have made; device 0 without a context.
    /// Throws: CudaError.
    static Device current();
    static int count();
    /// The devices whose primary context Bascule has retained, by ordinal.
    static std::vector<Device> used();
    /// The device whose primary context this is. Empty for all other contexts, such as green contexts. Throws:
    /// CudaError.
    static std::optional<Device> of_primary(CUctx_st* context);

    int ordinal() const noexcept { return known_->ordinal; }
    /// The primary context. The first call retains it; it is never released. Throws: CudaError if the device refuses.
    CUctx_st* context() const {
        CUctx_st* const retained = known_->context.load(std::memory_order_acquire);
        return retained != nullptr ? retained : retain();
    }
    /// Whether Bascule has retained the primary context.
    bool in_use() const noexcept { return known_->context.load(std::memory_order_acquire) != nullptr; }
    /// Whether the primary context is in use in this process. Throws: CudaError.
    bool is_active() const;
    /// A context for queries about memory of any device: this device's if it is in use, else the current one, else the
    /// primary context of any device that has one. Creates this device's only as a last resort. Throws: CudaError.
    CUctx_st* context_for_questions() const;
    const std::string& name() const noexcept;
    Arch arch() const noexcept;        ///< the compilation target: sm_90 on a GPU, compute_90 when emulated
    Arch capability() const noexcept;  ///< the device's own compute capability: sm_90
    bool emulated() const noexcept;
    const LaunchLimits& limits() const noexcept;  ///< limits that hold for all kernels
    int multiprocessors() const noexcept;
    bool shares_managed_memory() const noexcept;  ///< the host may access managed memory while kernels run
    bool reads_host_memory() const noexcept;      ///< kernels can use pageable memory

    /// An attribute by its name in the driver API: "clock_rate" for CU_DEVICE_ATTRIBUTE_CLOCK_RATE. Throws:
    /// ArgumentError for an unknown name, or if the driver is too old for the attribute; CudaError.
    int attribute(std::string_view name) const;
    /// All attributes that the driver knows. Throws: CudaError.
    std::vector<DeviceAttribute> attributes() const;
    std::string pci_bus_id()
        const;  ///< as nvidia-smi prints it, with a domain of four digits: "0000:3b:00.0"
    std::size_t total_memory() const;  ///< the bytes of memory that the device has
    std::size_t free_memory() const;   ///< the bytes that no process uses; retains the primary context

    /// Stack bytes per thread, for calls whose depth the compiler cannot know: recursion, calls through pointers,
    /// alloca. The driver's default is 1024. Throws: CudaError.
    std::size_t stack_bytes() const;
    /// Sets the stack bytes per thread for later launches. The next launch waits for the device and reserves that much
    /// memory for every thread that the device can run at once. Throws: CudaError if the device has too little memory.
    void set_stack_bytes(std::size_t bytes) const;

    bool operator==(const Device& other) const noexcept { return known_ == other.known_; }

  private:
    /// The part of a device's state that every launch needs. The rest is in device.cpp.
    struct Known {
        int ordinal = 0;
        // Never released, because handles to its memory may outlive all Bascule objects.
        mutable std::atomic<CUctx_st*> context{nullptr};
    };
    struct State;
    const State& state() const noexcept;
    CUctx_st* retain() const;
    static std::optional<Device> of_known(CUctx_st* context) noexcept;
    static std::optional<Device> of_native(int device);  // by its CUdevice

    const Known* known_;
    explicit Device(const Known* known) noexcept : known_(known) {}
};

/// Makes a context current for its lifetime and restores the caller's context afterwards. If the context is already
/// current, this costs one cuCtxGetCurrent. A thread without a context keeps device 0's, as after a call of the CUDA
/// runtime, so that its next launch is cheap.
class ContextGuard {
  public:
    explicit ContextGuard(CUctx_st* context);
    ~ContextGuard() {
        if (changed_) [[unlikely]]
            restore();
    }
    ContextGuard(ContextGuard&&) = delete;

    /// The caller's context if it was replaced. Null if it was the same context, or if there was none.
    CUctx_st* replaced() const noexcept { return changed_ ? previous_ : nullptr; }

  private:
    void change_to(CUctx_st* context);
    void restore() noexcept;

    CUctx_st* previous_ = nullptr;
    bool changed_ = false;
};

/// Create one before a call's first operation and `check` it after the last one is done. In between, another thread or
/// a signal handler may have reset the device, which drops pending work without a driver error.
class ResetWatch {
  public:
    ResetWatch() noexcept;
    /// `doing`: "copying to the host". Throws: CudaError if a reset has begun since construction, or was in progress then.
    void check(const char* doing) const;

    /// The code that resets a device keeps an object of this class while it does so.
    class Reset {
      public:
        Reset() noexcept;
        ~Reset();
        Reset(Reset&&) = delete;
    };

  private:
    std::uint64_t ended_;
};

}  // namespace bascule
