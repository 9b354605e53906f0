// The events that ordering and lifetime use: without timing, made once, used again and again.
#pragma once

#include <mutex>
#include <vector>

#include <bascule/runtime/driver/device.hpp>

struct CUevent_st;

namespace bascule {

/// A device's idle events. Never destroyed: handles in flight may outlive everything else. Thread-safe.
class EventPool {
  public:
    static EventPool& of(Device device);

    /// An event that nobody else has; makes one where none is idle. Throws: CudaError.
    CUevent_st* take();
    /// Its waits are enqueued or its record is done with: the next one may have it.
    void give_back(CUevent_st* event) noexcept;

  private:
    explicit EventPool(Device device) noexcept : device_(device) {}

    Device device_;
    std::mutex mutex_;
    std::vector<CUevent_st*> idle_;
};

}  // namespace bascule
