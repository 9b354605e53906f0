// Streams: creation, queries, waits and host functions.
#include <algorithm>

#include "driver/captures.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_pool.hpp"
#include "driver/shared_objects.hpp"

namespace emulated::driver {
namespace {

constexpr int lowest_priority = 0, highest_priority = -5;

}  // namespace

EMULATED_CONTEXT_API(cuStreamCreateWithPriority, 5050, CUstream* handle, unsigned int flags, int priority) {
    require(handle != nullptr && flags <= CU_STREAM_NON_BLOCKING);
    Context* context = current_context();
    auto made = std::make_shared<Stream>();
    made->context = context;
    made->stream.blocking = flags != CU_STREAM_NON_BLOCKING;
    made->flags = flags;
    made->priority = std::clamp(priority, highest_priority, lowest_priority);
    made->id = Process::get().next_id();
    context->graph.add(made->stream);
    *handle = new_handle<CUstream>(std::move(made));
    trace(BASCULE_EMULATED_CREATE, *handle, nullptr, 0, "cuStreamCreate");
}

EMULATED_API(cuStreamCreate, 2000, CUstream* handle, unsigned int flags) {
    check(cuStreamCreateWithPriority(handle, flags, 0));
}

/// Returns at once; what is pending still runs. Works after a fault too, because a context's resources can always be
/// released.
EMULATED_DRIVER_API(cuStreamDestroy, 4000, CUstream handle) {
    require(!is_default(handle), CUDA_ERROR_INVALID_HANDLE);
    const auto stream = remove<Stream>(handle);
    trace(BASCULE_EMULATED_DESTROY, handle, nullptr, 0, "cuStreamDestroy");
    stream->context->graph.remove(stream->stream);
}

EMULATED_STREAM_API(cuStreamSynchronize, 2000, CUstream handle) {
    const streams::DueDestructors due;
    const auto target = find_stream(handle);
    question_now(target, "cuStreamSynchronize");
    trace(BASCULE_EMULATED_SYNCHRONIZE, handle, nullptr, 0, "cuStreamSynchronize");
    target.context->graph.synchronize(*target.stream);
    release_unused_pool_memory();
    check(target.context->take_error());
}

EMULATED_STREAM_API(cuStreamQuery, 2000, CUstream handle) {
    const auto target = find_stream(handle);
    question_now(target, "cuStreamQuery");
    require(target.context->graph.query(*target.stream), CUDA_ERROR_NOT_READY);
    check(target.context->take_error());
}

EMULATED_STREAM_API(cuStreamWaitEvent, 3020, CUstream handle, CUevent event_handle, unsigned int flags) {
    const auto target = find_stream(handle);
    require(flags <= CU_EVENT_WAIT_EXTERNAL);
    const auto event = object_of<Event>(event_handle);
    if (flags == CU_EVENT_WAIT_EXTERNAL)
        return capture_event(target, streams::WorkNode::Kind::wait, event_handle);
    if (drops()) {
        trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
        return;
    }
    streams::Captures::Wait captured;
    if (streams::Captures::any() || event->capture.exists()) {
        captured = streams::Captures::get().wait(capture_target(target), event->capture);
        check(to_result(captured.refusal));
    }
    trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
    if (!captured.handled && event->shared != nullptr && !is_newest_here(*event))
        return wait_for_other_process(*event, target);
    if (!captured.handled) target.context->graph.wait(*target.stream, event->event);
}

EMULATED_STREAM_API(cuStreamGetCtx, 9020, CUstream handle, CUcontext* context) {
    return answer(context, reinterpret_cast<CUcontext>(find_stream(handle).context));
}

EMULATED_STREAM_API(cuStreamGetDevice, 12080, CUstream handle, CUdevice* device) {
    return answer(device, find_stream(handle).context->device);
}

EMULATED_STREAM_API(cuStreamGetFlags, 5050, CUstream handle, unsigned int* flags) {
    const auto target = find_stream(handle);
    no_capture_now(target, "cuStreamGetFlags");  // the only query of a property that is refused
    return answer(flags, target.properties().flags);
}

EMULATED_STREAM_API(cuStreamGetPriority, 5050, CUstream handle, int* priority) {
    return answer(priority, find_stream(handle).properties().priority);
}

EMULATED_STREAM_API(cuStreamGetId, 12000, CUstream handle, unsigned long long* id) {
    return answer(id, find_stream(handle).properties().id);
}

EMULATED_STREAM_API(cuLaunchHostFunc, 10000, CUstream handle, CUhostFn function, void* data) {
    require(function != nullptr);
    const auto target = find_stream(handle);
    const CaptureGate gate(target);
    trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuLaunchHostFunc");
    if (gate.captures()) return gate.add(make_host_node, function, data, *target.context);
    target.context->graph.submit(*target.stream, host_work(function, data, *target.context));
}

/// cuLaunchHostFunc's predecessor: the function is called after a fault too, with the error.
EMULATED_STREAM_API(cuStreamAddCallback, 5000, CUstream handle, CUstreamCallback callback, void* data,
                    unsigned int flags) {
    require(callback != nullptr && flags == 0);
    const auto target = find_stream(handle);
    const CaptureGate gate(target);
    if (gate.captures()) {  // only cuLaunchHostFunc can be captured
        question_now(target, "cuStreamAddCallback");
    }
    trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuStreamAddCallback");
    target.context->graph.submit(*target.stream, [=, context = target.context] {
        const streams::DriverLock lock;
        callback(handle, context->error.load(), data);
    });
}

}  // namespace emulated::driver
