// Calls that captures in other streams would forbid.
#pragma once

#include <bascule/runtime/driver/driver.hpp>

namespace bascule {

/// Lets the calling thread make calls that captures in other streams forbid and that do not affect them: queries
/// of our own events, freeing memory.
class RelaxedCapture {
  public:
    RelaxedCapture() noexcept { exchange(); }
    ~RelaxedCapture() { exchange(); }
    RelaxedCapture(RelaxedCapture&&) = delete;

  private:
    void exchange() noexcept { Driver::existing()->api().cuThreadExchangeStreamCaptureMode(&other_mode_); }

    CUstreamCaptureMode other_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // that the thread does not have now
};

}  // namespace bascule
