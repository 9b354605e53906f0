// Events: one that owns, one that borrows, and the pool that ordering takes its own from.
#pragma once

#include <cstdint>

#include <bascule/runtime/streams/stream.hpp>

struct CUevent_st;

namespace bascule {

/// An event that somebody else keeps alive. A small value.
class EventRef {
  public:
    explicit EventRef(CUevent_st* native) noexcept : native_(native) {}
    CUevent_st* native() const noexcept { return native_; }
    std::uint64_t handle() const noexcept { return reinterpret_cast<std::uint64_t>(native_); }

    /// Marks the work enqueued on `stream` so far. Throws: CudaError.
    void record(StreamRef stream) const;
    /// True when the work it marks has finished, and when it was never recorded. Throws: CudaError.
    bool query() const;
    /// The host waits for the work it marks. Throws: CudaError.
    void synchronize() const;

  private:
    CUevent_st* native_;
};

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

    operator EventRef() const noexcept { return EventRef(native_); }
    EventRef ref() const noexcept { return *this; }
    Device device() const noexcept { return device_; }

    bool timed() const noexcept { return timing_ == Timing::on; }

    /// Milliseconds from `start` to `end`; both recorded with timing and finished. Throws: CudaError.
    static float elapsed_ms(EventRef start, EventRef end);

  private:
    CUevent_st* native_ = nullptr;
    Device device_;
    Timing timing_ = Timing::on;
};

/// An event without timing, taken from its device's pool and given back when this goes.
/// A wait takes an event's state at the call, so an event may be used again as soon as its waits are
/// enqueued.
class PooledEvent {
  public:
    explicit PooledEvent(Device device);
    ~PooledEvent();
    PooledEvent(const PooledEvent&) = delete;
    PooledEvent& operator=(const PooledEvent&) = delete;
    EventRef ref() const noexcept { return EventRef(native_); }

  private:
    CUevent_st* native_;
    Device device_;
};

}  // namespace bascule
