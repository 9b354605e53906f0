#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/streams/event.hpp>

namespace bascule {

Event::Event(Device device, Timing timing) : native_(nullptr, {device}), timing_(timing) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const unsigned int flags = timing == Timing::on ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    CUevent made = nullptr;
    driver.check(driver.api().cuEventCreate(&made, flags), "making an event");
    native_.reset(made);
}

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

}  // namespace bascule
