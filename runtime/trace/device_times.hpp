// When the operations of a trace ran on their devices.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>

namespace bascule {

/// How the times of operations are found.
enum class TimesFrom : std::uint8_t {
    events,  ///< timing events around each operation, mapped to the host's clock by a reference event of the device
    emulator  ///< the emulated device tells when it began and ended each
};

/// The times of one trace. Thread-safe. An operation whose events the driver refuses, or that never runs, has no times.
/// The handles of streams are used only by the calls that are given them: a stream may be destroyed meanwhile.
class DeviceTimes {
  public:
    explicit DeviceTimes(TimesFrom from) noexcept : from_(from) {}
    DeviceTimes(DeviceTimes&&) = delete;

    /// Around the driver call that enqueues the operation, in the thread that makes it. The stream's context is
    /// current.
    void begin(std::uint64_t number, StreamRef stream);
    void end(std::uint64_t number, StreamRef stream);
    /// In place of `end`: nothing was enqueued.
    void cancel(std::uint64_t number) noexcept;
    /// Waits for all operations. Nothing is begun afterwards.
    std::unordered_map<std::uint64_t, TraceSpan> finish();

  private:
    /// An event of a device, and the host's time when it happened.
    struct Reference {
        Event event;
        std::int64_t at;
    };
    /// Where the emulated device tells, both are none.
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
    /// Recorded now; none where the driver refuses.
    std::optional<Event> record(StreamRef stream);
    /// The oldest, while there are more than so many.
    std::optional<Pending> take_oldest(std::size_t more_than);
    std::shared_ptr<const Reference> reference_of(Device device);
    void collect_finished();
    void collect(Pending done);

    const TimesFrom from_;
    std::mutex mutex_;  // of what follows; not held while the driver waits
    std::unordered_map<std::uint64_t, Begun> begun_;
    std::deque<Pending> pending_;  // in the order of issue, but for threads that enqueue at the same time
    std::map<int, std::vector<Event>> idle_;
    std::map<int, std::shared_ptr<const Reference>> references_;  // the newest of each device
    std::unordered_map<std::uint64_t, TraceSpan> known_;
};

}  // namespace bascule
