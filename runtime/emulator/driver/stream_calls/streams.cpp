// Streams.
#include <algorithm>

#include "driver/capture.hpp"

namespace emulated::driver {
namespace {

constexpr int lowest_priority = 0, highest_priority = -5;

bool is_default(CUstream handle) noexcept {
    return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

}  // namespace

EMULATED_CONTEXT_API(cuStreamCreateWithPriority, CUstream* handle, unsigned int flags, int priority) {
    EMULATED_REQUIRE(handle != nullptr && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    Context* context = current_context();
    auto made = std::make_shared<Stream>();
    made->context = context;
    made->stream.blocking = flags != CU_STREAM_NON_BLOCKING;
    made->flags = flags;
    made->priority = std::clamp(priority, highest_priority, lowest_priority);
    made->id = Process::get().next_id();
    context->graph.add(made->stream);
    *handle = reinterpret_cast<CUstream>(Process::get().handles().add(std::move(made)));
    trace(BASCULE_EMULATED_CREATE, *handle, nullptr, 0, "cuStreamCreate");
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamCreate, CUstream* handle, unsigned int flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}

/// Returns at once; what is pending still runs. Works after a fault too: what a context holds can always be
/// given back.
EMULATED_DRIVER_API(cuStreamDestroy, CUstream handle) {
    EMULATED_REQUIRE(!is_default(handle), CUDA_ERROR_INVALID_HANDLE);
    EMULATED_FIND(stream, Process::get().handles().remove<Stream>(handle));
    trace(BASCULE_EMULATED_DESTROY, handle, nullptr, 0, "cuStreamDestroy");
    stream->context->graph.remove(stream->stream);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamSynchronize, CUstream handle) {
    const streams::DueDestructors due;
    EMULATED_STREAM(target, handle);
    EMULATED_CHECK(question_now(target, "cuStreamSynchronize"));
    trace(BASCULE_EMULATED_SYNCHRONIZE, handle, nullptr, 0, "cuStreamSynchronize");
    target.context->graph.synchronize(*target.stream);
    return target.context->take_error();
}

EMULATED_API(cuStreamQuery, CUstream handle) {
    EMULATED_STREAM(target, handle);
    EMULATED_CHECK(question_now(target, "cuStreamQuery"));
    if (!target.context->graph.query(*target.stream)) return CUDA_ERROR_NOT_READY;
    return target.context->take_error();
}

EMULATED_API(cuStreamWaitEvent, CUstream handle, CUevent event_handle, unsigned int flags) {
    EMULATED_STREAM(target, handle);
    EMULATED_REQUIRE(flags == CU_EVENT_WAIT_DEFAULT, CUDA_ERROR_INVALID_VALUE);
    EMULATED_FIND(event, Process::get().handles().find<Event>(event_handle));
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
    if (!captured.handled) target.context->graph.wait(*target.stream, event->event);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetCtx, CUstream handle, CUcontext* context) {
    EMULATED_STREAM(target, handle);
    *context = reinterpret_cast<CUcontext>(target.context);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetDevice, CUstream handle, CUdevice* device) {
    EMULATED_STREAM(target, handle);
    *device = target.context->device;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetFlags, CUstream handle, unsigned int* flags) {
    EMULATED_STREAM(target, handle);
    *flags = target.properties().flags;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetPriority, CUstream handle, int* priority) {
    EMULATED_STREAM(target, handle);
    *priority = target.properties().priority;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetId, CUstream handle, unsigned long long* id) {
    EMULATED_STREAM(target, handle);
    *id = target.properties().id;
    return CUDA_SUCCESS;
}

/// Not called after a fault, as the documentation says of it.
EMULATED_API(cuLaunchHostFunc, CUstream handle, CUhostFn function, void* data) {
    EMULATED_REQUIRE(function != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_STREAM(target, handle);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuLaunchHostFunc");
    auto work = [function, data, context = target.context, resets = resets_before_call()] {
        const streams::DriverLock lock;
        if (context->executes(resets)) function(data);
    };
    if (gate.captures()) return gate.add(streams::CapturedNode::Kind::host, std::move(work));
    target.context->graph.submit(*target.stream, std::move(work));
    return CUDA_SUCCESS;
}

/// Older than cuLaunchHostFunc: the function is called after a fault too, with the error.
EMULATED_API(cuStreamAddCallback, CUstream handle, CUstreamCallback callback, void* data,
             unsigned int flags) {
    EMULATED_REQUIRE(callback != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
    EMULATED_STREAM(target, handle);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    if (gate.captures()) {  // "may not be used on a stream that is capturing": cuLaunchHostFunc may
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
