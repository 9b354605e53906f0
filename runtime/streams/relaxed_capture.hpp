// What a thread may do beside the captures of others.
#pragma once

namespace bascule {

/// Lets the calling thread do what captures in other streams do not allow, because it does not concern them:
/// asking our own events, giving memory back.
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
