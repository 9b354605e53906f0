// Callbacks for other parts of the runtime when streams are waited for, given out or destroyed; and flags for extra work at
// every launch.
#pragma once

#include <array>
#include <string>

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Extra work at every launch. The flags are one word, so that a launch tests all of them at once.
enum class Watch : unsigned {
    synchronise = 1,  ///< the host waits for each launch: launch_history.hpp
    record = 2,       ///< a trace is being recorded: recorder.hpp
    ranges = 4,       ///< a profiler is told what runs: recorder.hpp
    arrays = 16,      ///< the emulated device is given the arrays of each launch, for its checks
    hooks = 8,        ///< a function of the program is called for each launch: launch_hooks.hpp
};

namespace detail {
inline std::atomic<unsigned> watches{0};
}

inline bool watches_anything() noexcept { return detail::watches.load(std::memory_order_relaxed) != 0; }

inline bool watches(Watch which) noexcept {
    return (detail::watches.load(std::memory_order_relaxed) & static_cast<unsigned>(which)) != 0;
}

/// Sets or clears a flag for the whole process. Returns the previous state.
inline bool set_watch(Watch which, bool on) noexcept {
    const auto bit = static_cast<unsigned>(which);
    return ((on ? detail::watches.fetch_or(bit) : detail::watches.fetch_and(~bit)) & bit) != 0;
}

/// A call that a trace or a profiler shows: a wait of the host, or of one stream for another.
enum class WaitingCall : std::uint8_t { synchronize, wait };

/// The callbacks of one part. Null functions are not called.
struct StreamObserver {
    /// The host has waited for the operations up to `mark`, on the stream or on all streams of the device. `lost`: the
    /// wait failed because the context was lost, so no work runs any more.
    void (*stream_finished)(StreamRef stream, KeptMark mark, bool lost) noexcept = nullptr;
    void (*device_finished)(Device device, KeptMark mark, bool lost) noexcept = nullptr;
    /// Other code is about to get the stream's handle.
    void (*handle_given_out)(StreamRef stream) noexcept = nullptr;
    /// The stream is about to be destroyed.
    void (*stream_ends)(StreamRef stream) noexcept = nullptr;

    /// Later work on `waiting` waits for the work enqueued so far on `awaited`, or for `event`.
    void (*stream_waits)(StreamRef waiting, StreamRef awaited) = nullptr;
    void (*event_awaited)(StreamRef waiting, EventRef event) = nullptr;
    void (*event_recorded)(EventRef event, StreamRef stream) = nullptr;
    /// Called before and after a shown call. `end_call` gets what `begin_call` returned.
    void* (*begin_call)(WaitingCall call, std::string name) = nullptr;
    void (*end_call)(void* begun) noexcept = nullptr;
};

/// The parts that observe, in the order in which they are called.
enum class ObservingPart : std::uint8_t { faults, lifetime, memory, staging, trace };

namespace detail {
inline constinit std::array<std::atomic<const StreamObserver*>, 5> stream_observers{};
}

/// Sets the observer of one part for the whole process. `observer` must have static storage. Thread-safe.
inline void set_stream_observer(ObservingPart part, const StreamObserver& observer) noexcept {
    detail::stream_observers[static_cast<std::size_t>(part)].store(&observer, std::memory_order_release);
}

/// `tell_observers<&StreamObserver::stream_ends>(stream)` calls that function of all observers that have it.
template <auto function, class... Arguments>
void tell_observers(const Arguments&... arguments) {
    for (const auto& slot : detail::stream_observers) {
        const StreamObserver* observer = slot.load(std::memory_order_acquire);
        if (observer != nullptr && observer->*function != nullptr) (observer->*function)(arguments...);
    }
}

/// Shows a call from construction to the end of the scope. Costs one test while nothing is recorded.
class ShownCall {
  public:
    /// `describe` returns the call's name. It is called only if the call is shown.
    template <class Describe>
    ShownCall(WaitingCall call, const Describe& describe) {
        if (watches(Watch::record) || watches(Watch::ranges)) [[unlikely]]
            begin(call, describe());
    }
    ~ShownCall() {
        if (begun_ != nullptr) [[unlikely]]
            observer_->end_call(begun_);
    }
    ShownCall(ShownCall&&) = delete;

  private:
    [[gnu::cold, gnu::noinline]] void begin(WaitingCall call, std::string name) {
        for (const auto& slot : detail::stream_observers) {
            const StreamObserver* observer = slot.load(std::memory_order_acquire);
            if (observer == nullptr || observer->begin_call == nullptr) continue;
            observer_ = observer;
            begun_ = observer->begin_call(call, std::move(name));
            return;
        }
    }

    const StreamObserver* observer_ = nullptr;
    void* begun_ = nullptr;
};

}  // namespace bascule
