// Events are recorded on streams, and streams wait for them.
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/hidden_streams.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

void StreamRef::wait(EventRef event) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    driver.check(driver.api().cuStreamWaitEvent(native(), event.native(), CU_EVENT_WAIT_DEFAULT), native(),
                 "waiting for an event");
    // An event of a capture that another library began takes the stream into it.
    if (!may_be_captured_by_others(*this) && capture_of(*this).status == CaptureState::Status::active)
        give_out_handle(*this);
    trace::note_wait(*this, event);
}

void EventRef::record(StreamRef stream) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    driver.check(driver.api().cuEventRecord(native_, stream.native()), stream.native(), "recording an event");
    trace::note_record(*this, stream);
}

}  // namespace bascule
