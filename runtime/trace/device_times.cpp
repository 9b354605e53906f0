// Driver errors are ignored here: the program's own calls report a lost context, and a trace without a kernel's times
// is better than a failed launch.
#include <limits>
#include <utility>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/trace/device_times.hpp>

namespace bascule {
namespace {

/// The maximum number of operations whose events are kept. If there are more, the oldest events are queried.
constexpr std::size_t most_pending = 1024;

/// The number of attempts to measure a reference. The shortest is the least likely to have been interrupted.
constexpr int calibrations = 5;

/// The maximum age of a reference in nanoseconds. cuEventElapsedTime returns milliseconds as a float. Its precision
/// equals the events' resolution, 0.5 us, up to 4 s, and is 0.25 ms after an hour.
constexpr std::int64_t most_age = 4'000'000'000;

/// A stream on which nothing but reference events is recorded.
class IdleStream {
  public:
    explicit IdleStream(const Driver& driver) : driver_(driver) {
        driver.check(driver.api().cuStreamCreateWithPriority(&native_, CU_STREAM_NON_BLOCKING, 0),
                     "making a stream");
    }
    ~IdleStream() { driver_.report(driver_.api().cuStreamDestroy(native_), "destroying a stream"); }
    IdleStream(IdleStream&&) = delete;
    CUstream native() const noexcept { return native_; }

  private:
    const Driver& driver_;
    CUstream native_ = nullptr;
};

/// Empty if the driver refuses.
std::optional<std::int64_t> nanoseconds_between(const Event& begin, const Event& end) noexcept {
    float milliseconds = 0;
    const CUresult code =
        Driver::get().api().cuEventElapsedTime(&milliseconds, begin.ref().native(), end.ref().native());
    if (code != CUDA_SUCCESS) return std::nullopt;
    return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace

Event DeviceTimes::take_event(Device device) {
    {
        const std::lock_guard lock(mutex_);
        std::vector<Event>& idle = idle_[device.ordinal()];
        if (!idle.empty()) {
            Event event = std::move(idle.back());
            idle.pop_back();
            return event;
        }
    }
    return Event(device, Event::Timing::on);
}

/// Reads the host's clock right before recording an event on an idle stream and right after its completion.
std::shared_ptr<const DeviceTimes::Reference> DeviceTimes::reference_of(Device device) {
    {
        const std::lock_guard lock(mutex_);
        const auto known = references_.find(device.ordinal());
        if (known != references_.end() && trace_now() - known->second->at < most_age) return known->second;
    }
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const IdleStream stream(driver);
    Event event(device, Event::Timing::on);
    Event best(device, Event::Timing::on);
    std::int64_t at = 0;
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < calibrations; ++i) {
        const std::int64_t before = trace_now();
        driver.check(driver.api().cuEventRecord(event.ref().native(), stream.native()), "recording an event");
        driver.check(driver.api().cuEventSynchronize(event.ref().native()), "waiting for an event");
        const std::int64_t took = trace_now() - before;
        if (took >= shortest) continue;
        shortest = took;
        at = before + took / 2;
        std::swap(event, best);
    }
    auto made = std::make_shared<const Reference>(Reference{std::move(best), at});
    const std::lock_guard lock(mutex_);
    return references_[device.ordinal()] = std::move(made);
}

void DeviceTimes::begin(std::uint64_t number, StreamRef stream) {
    const Driver& driver = Driver::get();
    if (from_ == TimesFrom::emulator) {
        *driver.emulated_functions()->next_timer() = number;
        return;
    }
    try {
        std::shared_ptr<const Reference> reference = reference_of(stream.device());
        std::optional<Event> event = record(stream);
        if (!event) return;
        const std::lock_guard lock(mutex_);
        begun_.emplace(number, Begun{std::move(reference), std::move(event)});
    } catch (const Error&) {  // see above
    }
}

void DeviceTimes::end(std::uint64_t number, StreamRef stream) {
    const Driver& driver = Driver::get();
    if (from_ == TimesFrom::emulator) *driver.emulated_functions()->next_timer() = 0;
    try {
        std::optional<Event> event = record(stream);
        if (!event) return;
        const std::lock_guard lock(mutex_);
        if (from_ == TimesFrom::emulator) {
            pending_.push_back({number, {}, *std::move(event)});
        } else if (auto begun = begun_.extract(number)) {
            pending_.push_back({number, std::move(begun.mapped()), *std::move(event)});
        }
    } catch (const Error&) {  // see above
    }
    try {
        collect_finished();
    } catch (const Error&) {  // see above
    }
}

std::optional<Event> DeviceTimes::record(StreamRef stream) {
    Event event = take_event(stream.device());
    const ContextGuard context(stream.context());
    const Driver& driver = Driver::get();
    const Bookkeeping bookkeeping(driver);
    if (driver.api().cuEventRecord(event.ref().native(), stream.native()) != CUDA_SUCCESS)
        return std::nullopt;
    return event;
}

std::optional<DeviceTimes::Pending> DeviceTimes::take_oldest(std::size_t more_than) {
    const std::lock_guard lock(mutex_);
    if (pending_.size() <= more_than) return std::nullopt;
    std::optional<Pending> oldest(std::move(pending_.front()));
    pending_.pop_front();
    return oldest;
}

void DeviceTimes::cancel(std::uint64_t number) noexcept {
    if (from_ == TimesFrom::emulator) {
        *Driver::get().emulated_functions()->next_timer() = 0;
        return;
    }
    const std::lock_guard lock(mutex_);
    begun_.erase(number);
}

/// Limits the number of pending events.
void DeviceTimes::collect_finished() {
    while (std::optional<Pending> oldest = take_oldest(most_pending)) {
        const Driver& driver = Driver::get();
        CUresult code;
        {
            const ContextGuard context(oldest->end.device().context());
            const Bookkeeping bookkeeping(driver);
            code = driver.api().cuEventQuery(oldest->end.ref().native());
        }
        if (code == CUDA_ERROR_NOT_READY) {
            const std::lock_guard lock(mutex_);
            pending_.push_front(std::move(*oldest));
            return;
        }
        collect(std::move(*oldest));
    }
}

/// Stores the times of an operation that has finished or never will.
void DeviceTimes::collect(Pending done) {
    TraceSpan span;
    bool found = false;
    if (from_ == TimesFrom::emulator) {
        found = Driver::get().emulated_functions()->take_times(done.number, &span.begin, &span.end) != 0;
    } else {
        const ContextGuard context(done.end.device().context());
        // The duration is measured directly: the difference of two times since the reference would have twice the error.
        const std::optional<std::int64_t> before =
            nanoseconds_between(done.begin.reference->event, *done.begin.event);
        const std::optional<std::int64_t> took = nanoseconds_between(*done.begin.event, done.end);
        found = before && took;
        if (found) span.begin = done.begin.reference->at + *before;
        if (found) span.end = span.begin + *took;
    }
    const std::lock_guard lock(mutex_);
    if (found) known_.emplace(done.number, span);
    std::vector<Event>& idle = idle_[done.end.device().ordinal()];
    if (done.begin.event) idle.push_back(std::move(*done.begin.event));
    idle.push_back(std::move(done.end));
}

std::unordered_map<std::uint64_t, TraceSpan> DeviceTimes::finish() {
    const Driver& driver = Driver::get();
    while (std::optional<Pending> next = take_oldest(0)) {
        try {
            const ContextGuard context(next->end.device().context());
            {
                const Bookkeeping bookkeeping(driver);
                driver.api().cuEventSynchronize(next->end.ref().native());
            }
            collect(std::move(*next));
        } catch (const Error&) {  // see above
        }
    }
    const std::lock_guard lock(mutex_);
    return std::move(known_);
}

}  // namespace bascule
