// Waits of the host for a stream, an event or a device, and queries. All of them throw what checks found:
// CheckError. After a wait for a stream or a device, owners are released, and launches are removed from the launch
// history. Also the waits of streams for events, and the recording of events.
#include <fmt/format.h>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/found_errors.hpp>
#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>

namespace bascule {
namespace {

/// Tells the observers that everything up to `mark` has finished, or that the context is lost.
template <auto function, class Waited>
void tell_finished(const Waited& waited, KeptMark mark, const DriverResult& code) noexcept {
    if (code == CUDA_SUCCESS || loses_context(code))
        tell_observers<function>(waited, mark, code != CUDA_SUCCESS);
}

/// In a watched thread, an event of the whole context reports when all its work has finished, also on other libraries'
/// streams. Drivers before CUDA 12.5 have no such event: another thread then waits, which costs some 20 us. The
/// device's context must be current.
DriverResult wait_for_context(const Driver& driver, Device device) {
    const DriverFunctions& api = driver.api();
    if (!waits_are_watched()) return api.cuCtxSynchronize();
#if CUDA_VERSION >= 12050
    if (api.cuCtxRecordEvent) {
        const PooledEvent all(device);
        const CUevent event = all.ref().native();
        if (api.cuCtxRecordEvent(device.context(), event) == CUDA_SUCCESS) {
            return wait_watched(
                "a device", [&] { return api.cuEventQuery(event); }, [&] { return api.cuCtxSynchronize(); });
        }
    }
#endif
    return wait_watched_elsewhere("a device", [&api, context = device.context()] {
        api.cuCtxSetCurrent(context);  // this runs in another thread
        return api.cuCtxSynchronize();
    });
}

}  // namespace

void StreamRef::synchronize() const {
    require_no_capture(*this, "synchronize");
    const ShownCall call(WaitingCall::synchronize, [&] { return "synchronize " + name_of_stream(handle_); });
    const ResetWatch resets;
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    DriverResult code;
    {
        const ContextGuard context(device_.context());
        code = wait_watched(
            "a stream", [&] { return driver.api().cuStreamQuery(native()); },
            [&] { return driver.api().cuStreamSynchronize(native()); });
    }
    tell_finished<&StreamObserver::stream_finished>(*this, mark, code);
    resets.check("waiting for a stream");
    if (code == CUDA_SUCCESS) return raise_found_errors();
    const ContextGuard context(device_.context());  // so that an error names its device
    driver.check(code, native(), "waiting for what was enqueued");
}

bool StreamRef::query() const {
    require_no_capture(*this, "query");
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const DriverResult code = driver.api().cuStreamQuery(native());
    if (code == CUDA_ERROR_NOT_READY) return false;
    driver.check(code, native(), "asking whether all is finished");
    raise_found_errors();
    return true;
}

void StreamRef::finish_before_blocking_call(const char* what) const {
    if (!waits_are_watched()) return;
    DriverResult code;
    const auto query = [&] { return code = Driver::existing()->api().cuStreamQuery(native()); };
    wait_watched(what, query, [&] { return code; });
}

void StreamRef::wait(EventRef event) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    driver.check(driver.api().cuStreamWaitEvent(native(), event.native(), CU_EVENT_WAIT_DEFAULT), native(),
                 "waiting for an event");
    // Waiting for an event of another library's capture adds the stream to that capture.
    if (!may_be_captured_by_others(*this) && capture_of(*this).status == CaptureState::Status::active)
        give_out_handle(*this);
    tell_observers<&StreamObserver::event_awaited>(*this, event);
}

void EventRef::record(StreamRef stream) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    driver.check(driver.api().cuEventRecord(native_, stream.native()), stream.native(), "recording an event");
    tell_observers<&StreamObserver::event_recorded>(*this, stream);
}

bool EventRef::query() const {
    if (NotedCapture::any()) require_no_capture(device_, "query");
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const DriverResult code = driver.api().cuEventQuery(native_);
    if (code == CUDA_ERROR_NOT_READY) return false;
    driver.check(code, "asking whether an event has happened");
    raise_found_errors();
    return true;
}

void EventRef::synchronize() const {
    if (NotedCapture::any()) require_no_capture(device_, "synchronize");
    const ShownCall call(WaitingCall::synchronize, [] { return "synchronize an event"; });
    const ResetWatch resets;
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const DriverResult code = wait_watched(
        "an event", [&] { return driver.api().cuEventQuery(native_); },
        [&] { return driver.api().cuEventSynchronize(native_); });
    resets.check("waiting for an event");
    driver.check(code, "waiting for an event");
    raise_found_errors();
}

void synchronize(Device device) {
    if (!device.is_active()) return;  // no context, so nothing was ever enqueued
    require_no_capture(device, "synchronize");
    require_no_capture_by_others(device);
    const ShownCall call(WaitingCall::synchronize,
                         [&] { return fmt::format("synchronize device {}", device.ordinal()); });
    const ResetWatch resets;
    const KeptMark mark = kept_so_far();
    const Driver& driver = Driver::get();
    DriverResult code;
    {
        const ContextGuard context(device.context());
        if (MemoryPool* const pool = MemoryPool::existing(device)) pool->forget_former_use();
        code = wait_for_context(driver, device);
    }
    tell_finished<&StreamObserver::device_finished>(device, mark, code);
    resets.check("waiting for the device");
    if (code == CUDA_SUCCESS) return raise_found_errors();
    const ContextGuard context(device.context());  // so that an error names its device
    driver.check(code, "waiting for the device");
}

void wait_for_managed_memory(Device device) {
    if (device.shares_managed_memory()) return;
    for (const Device used : Device::used()) synchronize(used);
}

}  // namespace bascule
