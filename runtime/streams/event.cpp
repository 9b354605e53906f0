#include <utility>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/streams/event.hpp>

namespace bascule {

Event::Event(Device device, Timing timing) : device_(device), timing_(timing) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const unsigned int flags = timing == Timing::on ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    driver.check(driver.api().cuEventCreate(&native_, flags), "making an event");
}

Event::~Event() {
    if (native_ == nullptr) return;
    const ProgramLockReleased released;
    const Driver& driver = *Driver::existing();
    try {
        const ContextGuard context(device_.context());
        driver.report(driver.api().cuEventDestroy(native_), "destroying an event");
    } catch (...) {  // the driver is gone, and the event with it
    }
}

Event::Event(Event&& other) noexcept
    : native_(std::exchange(other.native_, nullptr)), device_(other.device_), timing_(other.timing_) {}

Event& Event::operator=(Event&& other) noexcept {
    std::swap(native_, other.native_);
    std::swap(device_, other.device_);
    std::swap(timing_, other.timing_);
    return *this;
}

float Event::elapsed_ms(EventRef start, EventRef end) {
    const Driver& driver = Driver::get();
    const ContextGuard context(start.device().context());
    float milliseconds = 0;
    driver.check(driver.api().cuEventElapsedTime(&milliseconds, start.native(), end.native()),
                 "reading the time between two events");
    return milliseconds;
}

}  // namespace bascule
