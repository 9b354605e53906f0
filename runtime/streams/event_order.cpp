// Events are recorded on streams, and streams wait for them.
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

void StreamRef::wait(EventRef event) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    driver.check(driver.api().cuStreamWaitEvent(native(), event.native(), CU_EVENT_WAIT_DEFAULT), native(),
                 "waiting for an event");
    trace::note_wait(*this, event);
}

void EventRef::record(StreamRef stream) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    driver.check(driver.api().cuEventRecord(native_, stream.native()), stream.native(), "recording an event");
    trace::note_record(*this, stream);
}

}  // namespace bascule
