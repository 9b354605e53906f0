// The driver's errors are ignored here: a lost context is reported by the program's own calls, and a trace that lacks a
// kernel's times is better than a launch that fails.
#include <limits>
#include <optional>
#include <utility>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/trace/device_times.hpp>

namespace bascule {
namespace {

/// Operations whose events are kept until somebody asks whether they have finished.
constexpr std::size_t most_pending = 1024;

/// The shortest of some attempts is the one that nothing interrupted.
constexpr int calibrations = 5;

/// A stream on which nothing else happens.
class IdleStream {
  public:
    explicit IdleStream(const Driver& driver) : driver_(driver) {
        driver.check(driver.api().cuStreamCreateWithPriority(&native_, CU_STREAM_NON_BLOCKING, 0),
                     "making a stream");
    }
    ~IdleStream() { driver_.report(driver_.api().cuStreamDestroy(native_), "destroying a stream"); }
    IdleStream(const IdleStream&) = delete;
    IdleStream& operator=(const IdleStream&) = delete;
    CUstream native() const noexcept { return native_; }

  private:
    const Driver& driver_;
    CUstream native_ = nullptr;
};

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

/// The host's clock is read right before the event is recorded on an idle stream and right after it has happened.
const DeviceTimes::Reference& DeviceTimes::reference_of(Device device) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = references_.find(device.ordinal()); known != references_.end())
            return known->second;
    }
    const Driver& driver = Driver::get();
    const RelaxedCapture relaxed;
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
    const std::lock_guard lock(mutex_);
    return references_.try_emplace(device.ordinal(), Reference{std::move(best), at}).first->second;
}

void DeviceTimes::begin(std::uint64_t number, StreamRef stream) {
    const Driver& driver = Driver::get();
    if (from_ == TimesFrom::emulator) {
        *driver.emulated_functions()->next_timer() = number;
        return;
    }
    try {
        reference_of(stream.device());
        Event event = take_event(stream.device());
        const Bookkeeping bookkeeping(driver);
        if (driver.api().cuEventRecord(event.ref().native(), stream.native()) != CUDA_SUCCESS) return;
        const std::lock_guard lock(mutex_);
        begun_.emplace(number, std::move(event));
    } catch (const Error&) {  // as above
    }
}

void DeviceTimes::end(std::uint64_t number, StreamRef stream) {
    const Driver& driver = Driver::get();
    if (from_ == TimesFrom::emulator) *driver.emulated_functions()->next_timer() = 0;
    try {
        Event event = take_event(stream.device());
        const Bookkeeping bookkeeping(driver);
        if (driver.api().cuEventRecord(event.ref().native(), stream.native()) != CUDA_SUCCESS) return;
        const std::lock_guard lock(mutex_);
        if (from_ == TimesFrom::emulator) {
            pending_.push_back({number, std::nullopt, std::move(event)});
        } else if (auto begun = begun_.extract(number)) {
            pending_.push_back({number, std::move(begun.mapped()), std::move(event)});
        }
    } catch (const Error&) {  // as above
    }
    collect_finished();
}

void DeviceTimes::cancel(std::uint64_t number) noexcept {
    if (from_ == TimesFrom::emulator) {
        *Driver::get().emulated_functions()->next_timer() = 0;
        return;
    }
    const std::lock_guard lock(mutex_);
    begun_.erase(number);
}

/// Keeps the number of events bounded.
void DeviceTimes::collect_finished() {
    for (;;) {
        std::optional<Pending> oldest;
        {
            const std::lock_guard lock(mutex_);
            if (pending_.size() <= most_pending) return;
            oldest.emplace(std::move(pending_.front()));
            pending_.pop_front();
        }
        const Driver& driver = Driver::get();
        CUresult code;
        {
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

/// The operation has finished, or never will.
void DeviceTimes::collect(Pending done) {
    const Driver& driver = Driver::get();
    TraceSpan span;
    bool found = false;
    if (from_ == TimesFrom::emulator) {
        found = driver.emulated_functions()->take_times(done.number, &span.begin, &span.end) != 0;
    } else {
        const Reference& reference = reference_of(done.end.device());
        const auto at = [&](const Event& event, std::int64_t& time) {
            float milliseconds = 0;
            const CUresult code = driver.api().cuEventElapsedTime(
                &milliseconds, reference.event.ref().native(), event.ref().native());
            time = reference.at + static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
            return code == CUDA_SUCCESS;
        };
        found = at(*done.begin, span.begin) && at(done.end, span.end);
    }
    const std::lock_guard lock(mutex_);
    if (found) known_.emplace(done.number, span);
    std::vector<Event>& idle = idle_[done.end.device().ordinal()];
    if (done.begin) idle.push_back(std::move(*done.begin));
    idle.push_back(std::move(done.end));
}

std::unordered_map<std::uint64_t, TraceSpan> DeviceTimes::finish() {
    const Driver& driver = Driver::get();
    for (;;) {
        std::optional<Pending> next;
        {
            const std::lock_guard lock(mutex_);
            if (pending_.empty()) return std::move(known_);
            next.emplace(std::move(pending_.front()));
            pending_.pop_front();
        }
        try {
            const ContextGuard context(next->end.device().context());
            {
                const Bookkeeping bookkeeping(driver);
                driver.api().cuEventSynchronize(next->end.ref().native());
            }
            collect(std::move(*next));
        } catch (const Error&) {  // as above
        }
    }
}

}  // namespace bascule
