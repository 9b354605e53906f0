// Devices and their primary contexts.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/text/source.hpp>

struct CUctx_st;

namespace bascule {

/// Devices beyond this many are ignored.
inline constexpr int max_devices = 64;

/// One device, used through its primary context. Naming a device and asking what it can do makes no context:
/// one takes some 0.5 GB of its memory and 0.3 s, and is refused where another process has the device for
/// itself. A small value; thread-safe.
class Device {
  public:
    /// Throws: ArgumentError for an ordinal that does not exist; CudaError.
    explicit Device(int ordinal);
    /// The device of the thread's current context, also one of another library; without one device 0. Throws: CudaError.
    static Device current();
    static int count();
    /// The devices that were used, by ordinal.
    static std::vector<Device> used();
    /// The device whose primary context this is; none for every other context, such as a green one. Throws:
    /// CudaError.
    static std::optional<Device> of_primary(CUctx_st* context);

    int ordinal() const noexcept { return known_->ordinal; }
    /// The primary context, which the first call retains for good. Throws: CudaError where the device refuses
    /// one.
    CUctx_st* context() const {
        CUctx_st* const retained = known_->context.load(std::memory_order_acquire);
        return retained != nullptr ? retained : retain();
    }
    /// Whether `context` has been called: Bascule uses the device.
    bool in_use() const noexcept { return known_->context.load(std::memory_order_acquire) != nullptr; }
    /// Whether the primary context is in use in this process. Throws: CudaError.
    bool is_active() const;
    /// A context in which to ask about memory, wherever that is: one that exists where there is any, else this
    /// device's. Throws: CudaError.
    CUctx_st* context_for_questions() const;
    const std::string& name() const noexcept;
    Arch arch() const noexcept;        ///< what to compile for: sm_90 on a GPU, compute_90 when emulated
    Arch capability() const noexcept;  ///< the device's own compute capability: sm_90
    bool emulated() const noexcept;
    const LaunchLimits& limits() const noexcept;  ///< of any kernel
    int multiprocessors() const noexcept;
    bool shares_managed_memory() const noexcept;  ///< the host may use it while kernels run
    bool reads_host_memory() const noexcept;      ///< any of it, not only what was pinned: pageable access

    /// The stack of each thread of a kernel for calls whose depth the compiler cannot know: of functions that call
    /// themselves, through pointers, and alloca. In bytes; the driver's default is 1024. Throws: CudaError.
    std::size_t stack_bytes() const;
    /// For launches from now on. The device sets as much memory aside for every thread that it can run at once, at the
    /// next launch, which waits for the device. Throws: CudaError for more than the device has.
    void set_stack_bytes(std::size_t bytes) const;

    bool operator==(const Device& other) const noexcept { return known_ == other.known_; }

  private:
    /// What every launch asks for. The rest is in device.cpp.
    struct Known {
        int ordinal = 0;
        // Never released: handles to its memory may outlive all our objects.
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

/// Makes a context current for its lifetime; puts the caller's back. Costs one cuCtxGetCurrent when it is
/// current already. A thread that had none keeps device 0's, as after a call of the CUDA runtime, so that
/// its next launch is cheap.
class ContextGuard {
  public:
    explicit ContextGuard(CUctx_st* context);
    ~ContextGuard() {
        if (changed_) [[unlikely]]
            restore();
    }
    ContextGuard(ContextGuard&&) = delete;

    /// The caller's context, where it is another one; null where there was none too.
    CUctx_st* replaced() const noexcept { return changed_ ? previous_ : nullptr; }

  private:
    void change_to(CUctx_st* context);
    void restore() noexcept;

    CUctx_st* previous_ = nullptr;
    bool changed_ = false;
};

}  // namespace bascule
