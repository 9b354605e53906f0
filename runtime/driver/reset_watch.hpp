// Whether the emulated device was reset during a call that waits.
#pragma once

#include <cstdint>

namespace bascule {

/// Made before a call's first operation, asked when its last one is done: between them another thread, or the handler
/// of a signal, may have reset the device, which drops what is pending without an error of the driver's.
class ResetWatch {
  public:
    ResetWatch() noexcept;
    /// `doing`: "copying to the host". Throws: CudaError if a reset began since then, or was going on.
    void check(const char* doing) const;

    /// What a reset is, from its beginning to its end.
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
