// Measures when the operations of a trace ran on their devices.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>

namespace bascule {

/// The source of the times of operations.
enum class TimesFrom : std::uint8_t {
    events,   ///< timing events, mapped to the host's clock by a reference event
    emulator  ///< the emulated device reports when each operation began and ended
};

/// The times of one trace. Thread-safe. An operation has no times if the driver refuses its events, or if it never
/// runs. Stream handles are used only during the calls that get them, because a stream may be destroyed afterwards.
class DeviceTimes {
  public:
    explicit DeviceTimes(TimesFrom from) noexcept : from_(from) {}
    DeviceTimes(DeviceTimes&&) = delete;

    /// Called before and after the driver call that enqueues the operation, in the same thread. The stream's context
    /// must be current.
    void begin(std::uint64_t number, StreamRef stream);
    void end(std::uint64_t number, StreamRef stream);
    /// Called in place of `end` if nothing was enqueued.
    void cancel(std::uint64_t number) noexcept;
    /// Waits for all operations and returns their times. `begin` must not be called afterwards.
    std::unordered_map<std::uint64_t, TraceSpan> finish();

  private:
    /// An event of a device, and the time on the host's clock when it completed.
    struct Reference {
        Event event;
        std::int64_t at;
    };
    /// Both members are empty if the emulated device measures.
    struct Begun {
        std::shared_ptr<const Reference> reference;
        std::optional<Event> event;
    };
    struct Pending {
        std::uint64_t number;
        Begun begin;
        Event end;
    };

    Event take_event(Device device);
    /// Records an event now; empty if the driver refuses.
    std::optional<Event> record(StreamRef stream);
    /// Removes the oldest operation if there are more than `more_than`.
    std::optional<Pending> take_oldest(std::size_t more_than);
    std::shared_ptr<const Reference> reference_of(Device device);
    void collect_finished();
    void collect(Pending done);

    const TimesFrom from_;
    std::mutex mutex_;  // guards the members below; not held while the driver waits
    std::unordered_map<std::uint64_t, Begun> begun_;
    std::deque<Pending> pending_;  // in order of issue, except between threads that enqueue at the same time
    std::map<int, std::vector<Event>> idle_;
    std::map<int, std::shared_ptr<const Reference>> references_;  // the newest of each device
    std::unordered_map<std::uint64_t, TraceSpan> known_;
};

}  // namespace bascule
