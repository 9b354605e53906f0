// Calls that captures in other streams would forbid.
#pragma once

namespace bascule {

/// Lets the calling thread make calls that captures in other streams forbid and that do not affect them: queries
/// of our own events, freeing memory.
class RelaxedCapture {
  public:
    RelaxedCapture() noexcept;
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    int mode_;
};

}  // namespace bascule
