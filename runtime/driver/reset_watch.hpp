// Detects a reset of the emulated device during a call that waits.
#pragma once

#include <cstdint>

namespace bascule {

/// Create one before a call's first operation and `check` it after the last one is done. In between, another thread or
/// a signal handler may have reset the device, which drops pending work without a driver error.
class ResetWatch {
  public:
    ResetWatch() noexcept;
    /// `doing`: "copying to the host". Throws: CudaError if a reset has begun since construction, or was in progress then.
    void check(const char* doing) const;

    /// Lives as long as a reset takes.
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
