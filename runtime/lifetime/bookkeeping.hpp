// Calls of the driver that are bookkeeping and no order.
#pragma once

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {

/// What the driver is asked while this lives is bookkeeping: the emulated device's trace does not show it, and captures do
/// not forbid it. They do not nest.
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

    /// Whether one lives in the calling thread: what tests record on a GPU leaves its calls out too.
    static bool& active() noexcept {
        thread_local constinit bool is_active = false;
        return is_active;
    }

  private:
    const RelaxedCapture relaxed_;
    const EmulatedFunctions* emulated_;
};

}  // namespace bascule
