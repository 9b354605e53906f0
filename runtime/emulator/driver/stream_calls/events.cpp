// Events: creation, records, waits and elapsed times.
#include "driver/capture.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_pool.hpp"
#include "driver/shared_objects.hpp"

namespace emulated::driver {

CUresult capture_event(const StreamTarget& target, streams::WorkNode::Kind kind, CUevent event) {
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    EMULATED_REQUIRE(gate.captures(), CUDA_ERROR_INVALID_VALUE);
    streams::WorkNode node;
    EMULATED_CHECK(make_event_node(node, kind, event));
    return gate.add(std::move(node));
}

EMULATED_CONTEXT_API(cuEventCreate, 2000, CUevent* handle, unsigned int flags) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    EMULATED_REQUIRE(handle != nullptr && flags <= (known | CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    const bool is_shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    auto event = std::make_shared<Event>();
    event->context = current_context();
    event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    // "CU_EVENT_INTERPROCESS must be specified along with CU_EVENT_DISABLE_TIMING."
    EMULATED_REQUIRE(!is_shared || !event->timing, CUDA_ERROR_INVALID_VALUE);
    if (is_shared) event->shared = streams::SharedMark::make();
    EMULATED_REQUIRE(!is_shared || event->shared != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    *handle = new_handle<CUevent>(std::move(event));
    trace(BASCULE_EMULATED_CREATE, nullptr, *handle, 0, "cuEventCreate");
    return CUDA_SUCCESS;
}

/// Streams that wait for the event still do. Works after a fault too.
EMULATED_DRIVER_API(cuEventDestroy, 4000, CUevent handle) {
    EMULATED_REQUIRE(current_context() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    EMULATED_REQUIRE(Process::get().handles().remove<Event>(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE);
    trace(BASCULE_EMULATED_DESTROY, nullptr, handle, 0, "cuEventDestroy");
    return CUDA_SUCCESS;
}

EMULATED_STREAM_API(cuEventRecordWithFlags, 11010, CUevent event_handle, CUstream handle,
                    unsigned int flags) {
    EMULATED_STREAM(target, handle);
    EMULATED_REQUIRE(current_context() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    EMULATED_REQUIRE(flags <= CU_EVENT_RECORD_EXTERNAL, CUDA_ERROR_INVALID_VALUE);
    const auto event = find_object<Event>(event_handle);
    EMULATED_REQUIRE(event != nullptr && event->context == target.context, CUDA_ERROR_INVALID_HANDLE);
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return capture_event(target, streams::WorkNode::Kind::record, event_handle);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    trace(BASCULE_EMULATED_RECORD, handle, event_handle, 0, "cuEventRecord");
    if (drops()) return CUDA_SUCCESS;
    if (gate.captures()) {
        return to_result(streams::Captures::get().record(capture_target(target), event->capture));
    }
    if (event->capture.exists()) streams::Captures::get().forget(event->capture);
    if (event->shared != nullptr) EMULATED_CHECK(begin_shared_record(*event, target));
    target.context->graph.record(event->event, *target.stream);
    return CUDA_SUCCESS;
}

EMULATED_STREAM_API(cuEventRecord, 2000, CUevent event, CUstream stream) {
    return cuEventRecordWithFlags(event, stream, 0);
}

EMULATED_CONTEXT_API(cuCtxRecordEvent, 12050, CUcontext handle, CUevent event_handle) {
    EMULATED_FIND(context, find_context(handle));
    EMULATED_FIND(event, find_object<Event>(event_handle));
    EMULATED_REQUIRE(event->context == context, CUDA_ERROR_INVALID_HANDLE);
    EMULATED_CHECK(question_now(*context, "cuCtxRecordEvent"));
    if (event->capture.exists()) streams::Captures::get().forget(event->capture);
    context->graph.record_all(event->event);
    return CUDA_SUCCESS;
}

EMULATED_CONTEXT_API(cuEventQuery, 2000, CUevent handle) {
    EMULATED_FIND(event, find_object<Event>(handle));
    EMULATED_CHECK(question_now(*event, "cuEventQuery"));
    if (event->shared != nullptr && !is_newest_here(*event))
        return event->shared->is_done(event->shared->newest()) ? event->context->take_error()
                                                               : CUDA_ERROR_NOT_READY;
    const bool is_done = event->context->graph.query(event->event);
    // The shared mark is set before the event's own, so other processes may already see the event as complete.
    if (!is_done && (event->shared == nullptr || !event->shared->is_done(event->shared->newest())))
        return CUDA_ERROR_NOT_READY;
    return event->context->take_error();
}

EMULATED_API(cuEventSynchronize, 2000, CUevent handle) {
    const streams::DueDestructors due;
    EMULATED_CHECK(ready());
    EMULATED_FIND(event, find_object<Event>(handle));
    EMULATED_CHECK(question_now(*event, "cuEventSynchronize"));
    trace(BASCULE_EMULATED_SYNCHRONIZE, nullptr, handle, 0, "cuEventSynchronize");
    if (event->shared != nullptr && !is_newest_here(*event)) {
        wait_for_other_process(*event, *event->context);
    } else {
        event->context->graph.synchronize(event->event);
    }
    release_unused_pool_memory();
    return event->context->take_error();
}

EMULATED_CONTEXT_API(cuEventElapsedTime, 12080, float* milliseconds, CUevent start_handle,
                     CUevent end_handle) {
    EMULATED_REQUIRE(milliseconds != nullptr, CUDA_ERROR_INVALID_VALUE);
    const auto start = find_object<Event>(start_handle);
    const auto end = find_object<Event>(end_handle);
    const bool timed = start != nullptr && end != nullptr && start->timing && end->timing;
    EMULATED_REQUIRE(timed && start->context == end->context, CUDA_ERROR_INVALID_HANDLE);
    for (const auto& event : {start, end}) EMULATED_CHECK(no_capture_now(*event, "cuEventElapsedTime"));
    const bool recorded =
        start->context->graph.recorded(start->event) && end->context->graph.recorded(end->event);
    EMULATED_REQUIRE(recorded, CUDA_ERROR_INVALID_HANDLE);
    for (const auto& event : {start, end}) {
        if (!event->context->graph.query(event->event)) return CUDA_ERROR_NOT_READY;
        EMULATED_CHECK(event->context->error.load());
    }
    const auto between = start->context->graph.milliseconds(start->event, end->event);
    EMULATED_REQUIRE(between.has_value(), CUDA_ERROR_NOT_READY);  // another thread recorded it again
    *milliseconds = *between;
    return CUDA_SUCCESS;
}

}  // namespace emulated::driver
