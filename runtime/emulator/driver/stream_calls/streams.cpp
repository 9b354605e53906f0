// Streams.
#include <algorithm>

#include "driver/capture.hpp"

using emulated::driver::CaptureGate;
using emulated::driver::Context;
using emulated::driver::current_context;
using emulated::driver::Event;
using emulated::driver::Process;
using emulated::driver::Stream;
using emulated::driver::StreamTarget;
using emulated::streams::CapturedNode;
using emulated::streams::Captures;

namespace {

constexpr int lowest_priority = 0, highest_priority = -5;

bool is_default(CUstream handle) noexcept {
    return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

}  // namespace

EMULATED_API(cuStreamCreateWithPriority, CUstream* handle, unsigned int flags, int priority) {
    EMULATED_NEEDS_CONTEXT();
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
    emulated::driver::trace(BASCULE_EMULATED_CREATE, *handle, nullptr, 0, "cuStreamCreate");
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamCreate, CUstream* handle, unsigned int flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}

/// Returns at once; what is pending still runs. Works after a fault too: what a context holds can always be
/// given back.
EMULATED_API(cuStreamDestroy, CUstream handle) {
    EMULATED_REQUIRE(Process::get().initialised(), CUDA_ERROR_NOT_INITIALIZED);
    EMULATED_REQUIRE(!is_default(handle), CUDA_ERROR_INVALID_HANDLE);
    const auto stream = Process::get().handles().remove<Stream>(handle);
    EMULATED_REQUIRE(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
    emulated::driver::trace(BASCULE_EMULATED_DESTROY, handle, nullptr, 0, "cuStreamDestroy");
    stream->context->graph.remove(stream->stream);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamSynchronize, CUstream handle) {
    const emulated::streams::DueDestructors due;
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    EMULATED_CHECK(emulated::driver::question_now(target, "cuStreamSynchronize"));
    emulated::driver::trace(BASCULE_EMULATED_SYNCHRONIZE, handle, nullptr, 0, "cuStreamSynchronize");
    target.context->graph.synchronize(*target.stream);
    return target.context->take_error();
}

EMULATED_API(cuStreamQuery, CUstream handle) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    EMULATED_CHECK(emulated::driver::question_now(target, "cuStreamQuery"));
    if (!target.context->graph.query(*target.stream)) return CUDA_ERROR_NOT_READY;
    return target.context->take_error();
}

EMULATED_API(cuStreamWaitEvent, CUstream handle, CUevent event_handle, unsigned int flags) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    EMULATED_REQUIRE(flags == CU_EVENT_WAIT_DEFAULT, CUDA_ERROR_INVALID_VALUE);
    const auto event = Process::get().handles().find<Event>(event_handle);
    EMULATED_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    if (emulated::driver::drops()) {
        emulated::driver::trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
        return CUDA_SUCCESS;
    }
    Captures::Wait captured;
    if (Captures::any() || event->capture.exists()) {
        captured = Captures::get().wait(emulated::driver::capture_target(target), event->capture);
        EMULATED_CHECK(emulated::driver::to_result(captured.refusal));
    }
    emulated::driver::trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
    if (!captured.handled) target.context->graph.wait(*target.stream, event->event);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetCtx, CUstream handle, CUcontext* context) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    *context = reinterpret_cast<CUcontext>(target.context);
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetDevice, CUstream handle, CUdevice* device) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    *device = target.context->device;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetFlags, CUstream handle, unsigned int* flags) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    *flags = target.properties().flags;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetPriority, CUstream handle, int* priority) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    *priority = target.properties().priority;
    return CUDA_SUCCESS;
}

EMULATED_API(cuStreamGetId, CUstream handle, unsigned long long* id) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    *id = target.properties().id;
    return CUDA_SUCCESS;
}

/// Not called after a fault, as the documentation says of it.
EMULATED_API(cuLaunchHostFunc, CUstream handle, CUhostFn function, void* data) {
    EMULATED_REQUIRE(function != nullptr, CUDA_ERROR_INVALID_VALUE);
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    emulated::driver::trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuLaunchHostFunc");
    auto work = [function, data, context = target.context, resets = emulated::driver::resets_before_call()] {
        const emulated::streams::DriverLock lock;
        if (context->executes(resets)) function(data);
    };
    if (gate.captures()) return gate.add(CapturedNode::Kind::host, std::move(work));
    target.context->graph.submit(*target.stream, std::move(work));
    return CUDA_SUCCESS;
}

/// Older than cuLaunchHostFunc: the function is called after a fault too, with the error.
EMULATED_API(cuStreamAddCallback, CUstream handle, CUstreamCallback callback, void* data,
             unsigned int flags) {
    EMULATED_REQUIRE(callback != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    if (gate.captures()) {  // "may not be used on a stream that is capturing": cuLaunchHostFunc may
        EMULATED_CHECK(emulated::driver::question_now(target, "cuStreamAddCallback"));
    }
    emulated::driver::trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuStreamAddCallback");
    target.context->graph.submit(*target.stream, [=, context = target.context] {
        const emulated::streams::DriverLock lock;
        callback(handle, context->error.load(), data);
    });
    return CUDA_SUCCESS;
}
