// Streams: creation, queries, waits and host functions.
#include <algorithm>

#include "driver/capture.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_pool.hpp"
#include "driver/shared_objects.hpp"

namespace emulated::driver {
namespace {

constexpr int lowest_priority = 0, highest_priority = -5;

}  // namespace

EMULATED_CONTEXT_API(cuStreamCreateWithPriority, 5050, CUstream* handle, unsigned int flags, int priority) {
    EMULATED_REQUIRE(handle != nullptr && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
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
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamCreate, 2000, CUstream* handle, unsigned int flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}

/// Returns at once; what is pending still runs. Works after a fault too, because a context's resources can always be
/// released.
EMULATED_DRIVER_API(cuStreamDestroy, 4000, CUstream handle) {
    EMULATED_REQUIRE(!is_default(handle), CUDA_ERROR_INVALID_HANDLE);
    EMULATED_FIND(stream, Process::get().handles().remove<Stream>(handle));
    trace(BASCULE_EMULATED_DESTROY, handle, nullptr, 0, "cuStreamDestroy");
    stream->context->graph.remove(stream->stream);
    return CUDA_SUCCESS;
}

EMULATED_STREAM_API(cuStreamSynchronize, 2000, CUstream handle) {
    const streams::DueDestructors due;
    EMULATED_STREAM(target, handle);
    EMULATED_CHECK(question_now(target, "cuStreamSynchronize"));
    trace(BASCULE_EMULATED_SYNCHRONIZE, handle, nullptr, 0, "cuStreamSynchronize");
    target.context->graph.synchronize(*target.stream);
    release_unused_pool_memory();
    return target.context->take_error();
}

EMULATED_STREAM_API(cuStreamQuery, 2000, CUstream handle) {
    EMULATED_STREAM(target, handle);
    EMULATED_CHECK(question_now(target, "cuStreamQuery"));
    if (!target.context->graph.query(*target.stream)) return CUDA_ERROR_NOT_READY;
    return target.context->take_error();
}

EMULATED_STREAM_API(cuStreamWaitEvent, 3020, CUstream handle, CUevent event_handle, unsigned int flags) {
    EMULATED_STREAM(target, handle);
    EMULATED_REQUIRE(flags <= CU_EVENT_WAIT_EXTERNAL, CUDA_ERROR_INVALID_VALUE);
    EMULATED_FIND(event, find_object<Event>(event_handle));
    if (flags == CU_EVENT_WAIT_EXTERNAL)
        return capture_event(target, streams::WorkNode::Kind::wait, event_handle);
    if (drops()) {
        trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
        return CUDA_SUCCESS;
    }
    streams::Captures::Wait captured;
    if (streams::Captures::any() || event->capture.exists()) {
        captured = streams::Captures::get().wait(capture_target(target), event->capture);
        EMULATED_CHECK(to_result(captured.refusal));
    }
    trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
    if (!captured.handled && event->shared != nullptr && !is_newest_here(*event))
        return wait_for_other_process(*event, target);
    if (!captured.handled) target.context->graph.wait(*target.stream, event->event);
    return CUDA_SUCCESS;
}

EMULATED_STREAM_API(cuStreamGetCtx, 9020, CUstream handle, CUcontext* context) {
    EMULATED_STREAM(target, handle);
    return answer(context, reinterpret_cast<CUcontext>(target.context));
}

EMULATED_STREAM_API(cuStreamGetDevice, 12080, CUstream handle, CUdevice* device) {
    EMULATED_STREAM(target, handle);
    return answer(device, target.context->device);
}

EMULATED_STREAM_API(cuStreamGetFlags, 5050, CUstream handle, unsigned int* flags) {
    EMULATED_STREAM(target, handle);
    EMULATED_CHECK(
        no_capture_now(target, "cuStreamGetFlags"));  // of all queries of a stream, only this one is refused
    return answer(flags, target.properties().flags);
}

EMULATED_STREAM_API(cuStreamGetPriority, 5050, CUstream handle, int* priority) {
    EMULATED_STREAM(target, handle);
    return answer(priority, target.properties().priority);
}

EMULATED_STREAM_API(cuStreamGetId, 12000, CUstream handle, unsigned long long* id) {
    EMULATED_STREAM(target, handle);
    return answer(id, target.properties().id);
}

EMULATED_STREAM_API(cuLaunchHostFunc, 10000, CUstream handle, CUhostFn function, void* data) {
    EMULATED_REQUIRE(function != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_STREAM(target, handle);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuLaunchHostFunc");
    if (gate.captures()) {
        streams::WorkNode node;
        EMULATED_CHECK(make_host_node(node, function, data, *target.context));
        return gate.add(std::move(node));
    }
    target.context->graph.submit(*target.stream, host_work(function, data, *target.context));
    return CUDA_SUCCESS;
}

/// cuLaunchHostFunc's predecessor: the function is called after a fault too, with the error.
EMULATED_STREAM_API(cuStreamAddCallback, 5000, CUstream handle, CUstreamCallback callback, void* data,
                    unsigned int flags) {
    EMULATED_REQUIRE(callback != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
    EMULATED_STREAM(target, handle);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    if (gate.captures()) {  // "may not be used on a stream that is capturing"; cuLaunchHostFunc may
        EMULATED_CHECK(question_now(target, "cuStreamAddCallback"));
    }
    trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuStreamAddCallback");
    target.context->graph.submit(*target.stream, [=, context = target.context] {
        const streams::DriverLock lock;
        callback(handle, context->error.load(), data);
    });
    return CUDA_SUCCESS;
}

}  // namespace emulated::driver
