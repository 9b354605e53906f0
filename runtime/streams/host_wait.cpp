// The host waits for a stream, an event or a device, or queries whether one is finished. Then owners
// are released, launches are taken off the history, and races that were found are raised.
#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/faults/race_check.hpp>
#include <bascule/runtime/faults/reset_watch.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/relaxed_capture.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>
#include <bascule/runtime/trace/traced_call.hpp>

namespace bascule {

void StreamRef::synchronize() const {
    require_no_capture(*this, "synchronize");
    const TracedCall call(CallKind::synchronize, [&] { return "synchronize " + name_of_stream(handle_); });
    const ResetWatch resets;
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    DriverResult code;
    {
        const ContextGuard context(device_.context());
        const RelaxedCapture relaxed;  // captures of other streams are not affected
        code = wait_watched(
            "a stream", [&] { return driver.api().cuStreamQuery(native()); },
            [&] { return driver.api().cuStreamSynchronize(native()); });
    }
    if (code == CUDA_SUCCESS) note_finished(*this, mark);
    if (code == CUDA_SUCCESS || loses_context(code)) release_finished(*this, mark);
    resets.check("waiting for a stream");
    if (code == CUDA_SUCCESS) return raise_races();
    const ContextGuard context(device_.context());  // the error names its device
    driver.check(code, native(), "waiting for what was enqueued");
}

bool StreamRef::query() const {
    require_no_capture(*this, "query");
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const RelaxedCapture relaxed;
    const DriverResult code = driver.api().cuStreamQuery(native());
    if (code == CUDA_ERROR_NOT_READY) return false;
    driver.check(code, native(), "asking whether all is finished");
    raise_races();
    return true;
}

bool EventRef::query() const {
    if (NotedCapture::any()) require_no_capture(device_, "query");
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const RelaxedCapture relaxed;  // captures of other streams are not affected
    const DriverResult code = driver.api().cuEventQuery(native_);
    if (code == CUDA_ERROR_NOT_READY) return false;
    driver.check(code, "asking whether an event has happened");
    raise_races();
    return true;
}

void EventRef::synchronize() const {
    if (NotedCapture::any()) require_no_capture(device_, "synchronize");
    const TracedCall call(CallKind::synchronize, [] { return "synchronize an event"; });
    const ResetWatch resets;
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const RelaxedCapture relaxed;
    const DriverResult code = wait_watched(
        "an event", [&] { return driver.api().cuEventQuery(native_); },
        [&] { return driver.api().cuEventSynchronize(native_); });
    resets.check("waiting for an event");
    driver.check(code, "waiting for an event");
    raise_races();
}

void synchronize(Device device) {
    if (!device.is_active()) return;  // nothing was ever enqueued there
    require_no_capture(device, "synchronize");
    const TracedCall call(CallKind::synchronize,
                          [&] { return fmt::format("synchronize device {}", device.ordinal()); });
    const ResetWatch resets;
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    DriverResult code;
    {
        const ContextGuard context(device.context());
        MemoryPool::Waiting frees(MemoryPool::existing(device));
        code = waits_are_watched()
                   ? wait_watched_elsewhere("a device",
                                            [&driver, context = device.context()] {
                                                driver.api().cuCtxSetCurrent(context);  // another thread's
                                                return driver.api().cuCtxSynchronize();
                                            })
                   : driver.api().cuCtxSynchronize();
        if (code == CUDA_SUCCESS) frees.free();
    }
    if (code == CUDA_SUCCESS) note_finished(device, mark);
    if (code == CUDA_SUCCESS || loses_context(code)) release_finished(device, mark);
    resets.check("waiting for the device");
    if (code == CUDA_SUCCESS) return raise_races();
    const ContextGuard context(device.context());  // the error names its device
    driver.check(code, "waiting for the device");
}

void wait_for_managed_memory(Device device) {
    if (device.shares_managed_memory()) return;
    for (const Device used : Device::used()) synchronize(used);
}

}  // namespace bascule
