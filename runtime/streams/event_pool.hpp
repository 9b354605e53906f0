// The events that ordering and lifetime use: without timing, made once, used again and again.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// A device's idle events. Never destroyed: handles in flight may outlive everything else. Thread-safe.
class EventPool {
  public:
    static EventPool& of(Device device);

    /// An event for the caller alone; makes one where none is idle. Throws: CudaError.
    CUevent_st* take();
    /// May be called as soon as its waits are enqueued.
    void give_back(CUevent_st* event) noexcept;

  private:
    explicit EventPool(Device device) noexcept : device_(device) {}

    Device device_;
    std::mutex mutex_;
    std::vector<CUevent_st*> idle_;
};

/// A thread's own idle event: most launches take and give back one at a time, and need no lock then. Plain
/// data: what has a destructor would be asked at every use whether it was made yet.
struct IdleEvent {
    enum class State : std::uint8_t { fresh, returned_at_end, over };
    CUevent_st* event = nullptr;
    std::optional<Device> device;
    State state = State::fresh;
};

/// An event without timing, taken from its device's pool and given back when this goes.
/// A wait takes an event's state at the call, so an event may be used again as soon as its waits are
/// enqueued. For one thread, which makes and destroys it.
class PooledEvent {
  public:
    explicit PooledEvent(Device device);
    ~PooledEvent();
    PooledEvent(PooledEvent&&) = delete;
    EventRef ref() const noexcept { return {native_, device_}; }

  private:
    CUevent_st* native_;
    Device device_;
    IdleEvent& idle_;  // found once
};

}  // namespace bascule
