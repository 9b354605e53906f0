// Driver calls that Bascule makes for its own bookkeeping and that order nothing for the program.
#pragma once

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {

/// While an object lives, the calling thread's driver calls count as bookkeeping: the emulated device's trace omits
/// them, and captures do not forbid them. Objects do not nest.
class Bookkeeping {
  public:
    explicit Bookkeeping(const Driver& driver) noexcept : emulated_(driver.emulated_functions()) {
        if (emulated_ != nullptr) emulated_->bookkeeping(1);
        active() = true;
    }
    ~Bookkeeping() {
        if (emulated_ != nullptr) emulated_->bookkeeping(0);
        active() = false;
    }
    Bookkeeping(Bookkeeping&&) = delete;

    /// True while an object lives in the calling thread. Recordings of driver calls on a GPU omit such calls too.
    static bool& active() noexcept {
        thread_local constinit bool is_active = false;
        return is_active;
    }

  private:
    const RelaxedCapture relaxed_;
    const EmulatedFunctions* emulated_;
};

}  // namespace bascule
