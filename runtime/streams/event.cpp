#include <array>
#include <atomic>
#include <utility>

#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/streams/event.hpp>

namespace bascule {

namespace {

CUevent new_event(Device device, unsigned int flags) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUevent event = nullptr;
    driver.check(driver.api().cuEventCreate(&event, flags), "making an event");
    return event;
}

}  // namespace

Event::Event(Device device, Timing timing)
    : native_(new_event(device, timing == Timing::on ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), {device}),
      timing_(timing) {}

void Event::Destroyer::operator()(CUevent_st* event) const noexcept {
    end_in_context(device, [&](const Driver& driver) {
        driver.report(driver.api().cuEventDestroy(event), "destroying an event");
    });
}

float Event::elapsed_ms(EventRef start, EventRef end) {
    const Driver& driver = Driver::get();
    const ContextGuard context(start.device().context());
    float milliseconds = 0;
    driver.check(driver.api().cuEventElapsedTime(&milliseconds, start.native(), end.native()),
                 "reading the time between two events");
    return milliseconds;
}

EventPool& EventPool::of(Device device) {
    static std::array<std::atomic<EventPool*>, max_devices> pools{};
    std::atomic<EventPool*>& slot = pools[static_cast<std::size_t>(device.ordinal())];
    EventPool* pool = slot.load(std::memory_order_acquire);
    if (pool != nullptr) [[likely]]
        return *pool;
    auto* made = new EventPool(device);  // never freed: reachable through `pools`
    if (slot.compare_exchange_strong(pool, made)) return *made;
    delete made;
    return *pool;
}

CUevent_st* EventPool::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            CUevent_st* event = idle_.back();
            idle_.pop_back();
            return event;
        }
    }
    return new_event(device_, CU_EVENT_DISABLE_TIMING);
}

void EventPool::recycle(CUevent_st* event) noexcept {
    if (Driver::lost_by_fork()) return;  // a thread that does not exist here may hold the lock
    try {
        const std::lock_guard lock(mutex_);
        idle_.push_back(event);
        return;
    } catch (...) {  // out of memory
    }
    try {
        const ContextGuard context(device_.context());
        Driver::existing()->api().cuEventDestroy(event);
    } catch (...) {  // the driver and its events are gone
    }
}

namespace {

thread_local constinit IdleEvent mine;

struct ReturnAtEnd {
    ~ReturnAtEnd() {
        mine.state = IdleEvent::State::over;
        if (mine.event != nullptr) EventPool::of(*mine.device).recycle(std::exchange(mine.event, nullptr));
    }
};

[[gnu::noinline]] void return_at_end() {
    mine.state = IdleEvent::State::returned_at_end;
    thread_local const ReturnAtEnd at_end;
}

}  // namespace

PooledEvent::PooledEvent(Device device) : device_(device), idle_(mine) {
    native_ = idle_.event != nullptr && idle_.device == device ? std::exchange(idle_.event, nullptr)
                                                               : EventPool::of(device).take();
}

PooledEvent::~PooledEvent() {
    if (idle_.state == IdleEvent::State::fresh) return_at_end();
    if (idle_.event != nullptr || idle_.state == IdleEvent::State::over) {
        EventPool::of(device_).recycle(native_);
        return;
    }
    idle_.event = native_;
    idle_.device = device_;
}

}  // namespace bascule
