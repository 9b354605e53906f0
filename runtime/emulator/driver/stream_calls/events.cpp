// Events: creation, records, waits and elapsed times.
#include "driver/captures.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_pool.hpp"
#include "driver/shared_objects.hpp"

namespace emulated::driver {

void capture_event(const StreamTarget& target, streams::WorkNode::Kind kind, CUevent event) {
    const CaptureGate gate(target);
    require(gate.captures());
    return gate.add(make_event_node, kind, event);
}

EMULATED_CONTEXT_API(cuEventCreate, 2000, CUevent* handle, unsigned int flags) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    require(handle != nullptr && flags <= (known | CU_EVENT_INTERPROCESS));
    const bool is_shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    auto event = std::make_shared<Event>();
    event->context = current_context();
    event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    // "CU_EVENT_INTERPROCESS must be specified along with CU_EVENT_DISABLE_TIMING."
    require(!is_shared || !event->timing);
    if (is_shared) event->shared = streams::SharedMark::make();
    require(!is_shared || event->shared != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    *handle = new_handle<CUevent>(std::move(event));
    trace(BASCULE_EMULATED_CREATE, nullptr, *handle, 0, "cuEventCreate");
}

/// Streams that wait for the event still do. Works after a fault too.
EMULATED_DRIVER_API(cuEventDestroy, 4000, CUevent handle) {
    require(current_context() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    remove<Event>(handle);
    trace(BASCULE_EMULATED_DESTROY, nullptr, handle, 0, "cuEventDestroy");
}

EMULATED_STREAM_API(cuEventRecordWithFlags, 11010, CUevent event_handle, CUstream handle,
                    unsigned int flags) {
    const auto target = find_stream(handle);
    require(current_context() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(flags <= CU_EVENT_RECORD_EXTERNAL);
    const auto event = find_object<Event>(event_handle);
    require(event != nullptr && event->context == target.context, CUDA_ERROR_INVALID_HANDLE);
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return capture_event(target, streams::WorkNode::Kind::record, event_handle);
    const CaptureGate gate(target);
    trace(BASCULE_EMULATED_RECORD, handle, event_handle, 0, "cuEventRecord");
    if (drops()) return;
    if (gate.captures()) {
        return check(to_result(streams::Captures::get().record(capture_target(target), event->capture)));
    }
    if (event->capture.exists()) streams::Captures::get().forget(event->capture);
    if (event->shared != nullptr) begin_shared_record(*event, target);
    target.context->graph.record(event->event, *target.stream);
}

EMULATED_STREAM_API(cuEventRecord, 2000, CUevent event, CUstream stream) {
    check(cuEventRecordWithFlags(event, stream, 0));
}

EMULATED_CONTEXT_API(cuCtxRecordEvent, 12050, CUcontext handle, CUevent event_handle) {
    Context* context = find_context(handle);
    require(context != nullptr, CUDA_ERROR_INVALID_HANDLE);
    const auto event = object_of<Event>(event_handle);
    require(event->context == context, CUDA_ERROR_INVALID_HANDLE);
    question_now(*context, "cuCtxRecordEvent");
    if (event->capture.exists()) streams::Captures::get().forget(event->capture);
    context->graph.record_all(event->event);
}

EMULATED_CONTEXT_API(cuEventQuery, 2000, CUevent handle) {
    const auto event = object_of<Event>(handle);
    question_now(*event, "cuEventQuery");
    const bool elsewhere = event->shared != nullptr && !is_newest_here(*event);
    // The shared mark is set before the event's own, so other processes may already see the event as complete.
    const bool is_done = (!elsewhere && event->context->graph.query(event->event)) ||
                         (event->shared != nullptr && event->shared->is_done(event->shared->newest()));
    require(is_done, CUDA_ERROR_NOT_READY);
    check(event->context->take_error());
}

EMULATED_API(cuEventSynchronize, 2000, CUevent handle) {
    const streams::DueDestructors due;
    check(ready());
    const auto event = object_of<Event>(handle);
    question_now(*event, "cuEventSynchronize");
    trace(BASCULE_EMULATED_SYNCHRONIZE, nullptr, handle, 0, "cuEventSynchronize");
    if (event->shared != nullptr && !is_newest_here(*event)) {
        wait_for_other_process(*event, *event->context);
    } else {
        event->context->graph.synchronize(event->event);
    }
    release_unused_pool_memory();
    check(event->context->take_error());
}

EMULATED_CONTEXT_API(cuEventElapsedTime, 12080, float* milliseconds, CUevent start_handle,
                     CUevent end_handle) {
    require(milliseconds != nullptr);
    const auto start = find_object<Event>(start_handle);
    const auto end = find_object<Event>(end_handle);
    const bool timed = start != nullptr && end != nullptr && start->timing && end->timing;
    require(timed && start->context == end->context, CUDA_ERROR_INVALID_HANDLE);
    for (const auto& event : {start, end}) no_capture_now(*event, "cuEventElapsedTime");
    const bool recorded =
        start->context->graph.recorded(start->event) && end->context->graph.recorded(end->event);
    require(recorded, CUDA_ERROR_INVALID_HANDLE);
    for (const auto& event : {start, end}) {
        require(event->context->graph.query(event->event), CUDA_ERROR_NOT_READY);
        check(event->context->error.load());
    }
    const auto between = start->context->graph.milliseconds(start->event, end->event);
    require(between.has_value(), CUDA_ERROR_NOT_READY);  // another thread recorded it again
    *milliseconds = *between;
}

}  // namespace emulated::driver
