// CUDA events: owned ones, and reusable ones without timing, for ordering and lifetime.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// An event owned by this object. Move-only. Thread-safe: any thread may use it; destroy it in one.
class Event {
  public:
    enum class Timing : std::uint8_t { off, on };

    /// Throws: CudaError.
    explicit Event(Device device = Device::current(), Timing timing = Timing::on);

    operator EventRef() const noexcept { return {native_.get(), device()}; }
    EventRef ref() const noexcept { return *this; }
    Device device() const noexcept { return native_.get_deleter().device; }

    bool timed() const noexcept { return timing_ == Timing::on; }

    /// The milliseconds from `start` to `end`. Both are events of one device, recorded with timing, and finished.
    /// Throws: CudaError.
    static float elapsed_ms(EventRef start, EventRef end);

  private:
    struct Destroyer {
        Device device;
        void operator()(CUevent_st* event) const noexcept;
    };
    std::unique_ptr<CUevent_st, Destroyer> native_;
    Timing timing_;
};

/// A device's idle events. Never destroyed, because handles may outlive everything else. Thread-safe.
class EventPool {
  public:
    static EventPool& of(Device device);

    /// Returns an idle event or makes a new one. The caller has exclusive use of it. Throws: CudaError.
    CUevent_st* take();
    /// Returns an event to the pool. Allowed as soon as its waits are enqueued.
    void recycle(CUevent_st* event) noexcept;

  private:
    explicit EventPool(Device device) noexcept : device_(device) {}

    Device device_;
    std::mutex mutex_;
    std::vector<CUevent_st*> idle_;
};

/// A thread's own idle event. Most launches take and return one at a time, and so need no lock. Trivially destructible,
/// because a thread-local object with a destructor is checked for initialization at each access.
struct IdleEvent {
    enum class State : std::uint8_t { fresh, returned_at_end, over };
    CUevent_st* event = nullptr;
    std::optional<Device> device;
    State state = State::fresh;
};

/// An event without timing from its device's pool, returned on destruction. A wait uses the event's state at the time of the
/// call, so an event may be reused as soon as its waits are enqueued. One thread creates and destroys the object.
class PooledEvent {
  public:
    explicit PooledEvent(Device device);
    ~PooledEvent();
    PooledEvent(PooledEvent&&) = delete;
    EventRef ref() const noexcept { return {native_, device_}; }

  private:
    CUevent_st* native_;
    Device device_;
    IdleEvent& idle_;  // cached: finding it costs a call
};

}  // namespace bascule
