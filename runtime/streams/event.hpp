// Events that an object owns.
#pragma once

#include <cstdint>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// An event that this object owns. Thread-safe: any thread may use it; destroy it on one.
class Event {
  public:
    enum class Timing : std::uint8_t { off, on };

    /// Throws: CudaError.
    explicit Event(Device device = Device::current(), Timing timing = Timing::on);
    ~Event();  // never throws
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    operator EventRef() const noexcept { return {native_, device_}; }
    EventRef ref() const noexcept { return *this; }
    Device device() const noexcept { return device_; }

    bool timed() const noexcept { return timing_ == Timing::on; }

    /// Milliseconds from `start` to `end`, events of one device; both recorded with timing and finished.
    /// Throws: CudaError.
    static float elapsed_ms(EventRef start, EventRef end);

  private:
    CUevent_st* native_ = nullptr;
    Device device_;
    Timing timing_ = Timing::on;
};

}  // namespace bascule
