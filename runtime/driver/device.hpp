// Devices and their primary contexts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/text/source.hpp>

struct CUctx_st;

namespace bascule {

/// Devices beyond this many are ignored.
inline constexpr int max_devices = 64;

/// One device, met through its primary context, which is retained at first use and kept. A small value;
/// thread-safe.
class Device {
  public:
    /// Throws: ArgumentError for an ordinal that does not exist; CudaError.
    explicit Device(int ordinal);
    /// The device of the thread's current context if that is a primary one, else device 0.
    static Device current();
    static int count();
    /// The devices that were used, by ordinal.
    static std::vector<Device> used();

    int ordinal() const noexcept { return known_->ordinal; }
    CUctx_st* context() const noexcept { return known_->context; }  ///< the primary context
    const std::string& name() const noexcept;
    Arch arch() const noexcept;  ///< what to compile for: sm_90 on a GPU, compute_80 when emulated
    bool emulated() const noexcept;
    const LaunchLimits& limits() const noexcept;  ///< of any kernel
    int multiprocessors() const noexcept;
    bool reads_host_memory() const noexcept;  ///< any of it, not only what was pinned: pageable access

    bool operator==(const Device& other) const noexcept { return known_ == other.known_; }

  private:
    /// What every launch asks for. The rest is in device.cpp.
    struct Known {
        int ordinal = 0;
        CUctx_st* context = nullptr;  // never released: handles to its memory may outlive all our objects
    };
    struct State;
    const State& state() const noexcept;

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
    ContextGuard(const ContextGuard&) = delete;
    ContextGuard& operator=(const ContextGuard&) = delete;

  private:
    void change_to(CUctx_st* context);
    void restore() noexcept;

    CUctx_st* previous_ = nullptr;
    bool changed_ = false;
};

}  // namespace bascule
