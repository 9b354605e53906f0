// Streams and events.
#include <chrono>

#include "driver/call.hpp"

using emulated::driver::Context;
using emulated::driver::context_of;
using emulated::driver::current_context;
using emulated::driver::Event;
using emulated::driver::find_event;
using emulated::driver::find_stream;
using emulated::driver::Stream;

namespace {

/// A stream handle's meaning, or why it has none.
struct Target {
    CUresult state = CUDA_SUCCESS;
    Context* context = nullptr;
    emulated::streams::Stream* stream = nullptr;

    explicit Target(CUstream handle) {
        state = emulated::driver::ready();
        if (state != CUDA_SUCCESS) return;
        context = context_of(handle);
        stream = context == nullptr ? nullptr : find_stream(*context, handle);
        if (stream == nullptr) state = CUDA_ERROR_INVALID_HANDLE;
    }
};

}  // namespace

EMULATED_API cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    EMULATED_COUNT("cuStreamCreateWithPriority");
    EMULATED_NEEDS_CONTEXT();
    if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    Context* context = current_context();
    auto made = std::make_unique<Stream>();
    made->context = context;
    made->stream.blocking = flags != CU_STREAM_NON_BLOCKING;
    made->stream.flags = flags;
    made->stream.priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    context->graph.add(made->stream);
    *stream = reinterpret_cast<CUstream>(made.get());
    const std::lock_guard lock(context->mutex);
    context->streams.emplace(made.get(), std::move(made));
    emulated::driver::trace(BASCULE_EMULATED_CREATE, *stream, nullptr, 0, "cuStreamCreate");
    return CUDA_SUCCESS;
}

EMULATED_API cuStreamCreate(CUstream* stream, unsigned int flags) {
    EMULATED_COUNT("cuStreamCreate");
    return cuStreamCreateWithPriority(stream, flags, 0);
}

EMULATED_API cuStreamDestroy(CUstream handle) {
    EMULATED_COUNT("cuStreamDestroy");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    emulated::driver::trace(BASCULE_EMULATED_DESTROY, handle, nullptr, 0, "cuStreamDestroy");
    target.context->graph.remove(*target.stream);
    const std::lock_guard lock(target.context->mutex);
    return target.context->streams.erase(reinterpret_cast<Stream*>(handle)) == 1 ? CUDA_SUCCESS
                                                                                 : CUDA_ERROR_INVALID_HANDLE;
}

EMULATED_API cuStreamSynchronize(CUstream handle) {
    EMULATED_COUNT("cuStreamSynchronize");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    emulated::driver::trace(BASCULE_EMULATED_SYNCHRONIZE, handle, nullptr, 0, "cuStreamSynchronize");
    target.context->graph.synchronize(*target.stream);
    return target.context->error.load();
}

EMULATED_API cuStreamQuery(CUstream handle) {
    EMULATED_COUNT("cuStreamQuery");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    if (!target.context->graph.query(*target.stream)) return CUDA_ERROR_NOT_READY;
    return target.context->error.load();
}

EMULATED_API cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
    EMULATED_COUNT("cuStreamWaitEvent");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    Event* event = find_event(event_handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_WAIT, handle, event_handle, 0, "cuStreamWaitEvent");
    // Another context's work runs under another lock: what it marks is run first.
    if (event->context != target.context) event->context->graph.synchronize(event->event);
    target.context->graph.wait(*target.stream, event->event);
    return CUDA_SUCCESS;
}

EMULATED_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
    EMULATED_COUNT("cuStreamGetCtx");
    const Target target(handle);
    if (target.state == CUDA_SUCCESS) *context = reinterpret_cast<CUcontext>(target.context);
    return target.state;
}

EMULATED_API cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    EMULATED_COUNT("cuStreamGetFlags");
    const Target target(handle);
    if (target.state == CUDA_SUCCESS) *flags = target.stream->flags;
    return target.state;
}

EMULATED_API cuStreamGetPriority(CUstream handle, int* priority) {
    EMULATED_COUNT("cuStreamGetPriority");
    const Target target(handle);
    if (target.state == CUDA_SUCCESS) *priority = target.stream->priority;
    return target.state;
}

EMULATED_API cuStreamGetId(CUstream handle, unsigned long long* id) {
    EMULATED_COUNT("cuStreamGetId");
    const Target target(handle);
    if (target.state == CUDA_SUCCESS) *id = reinterpret_cast<unsigned long long>(target.stream);
    return target.state;
}

EMULATED_API cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    EMULATED_COUNT("cuStreamIsCapturing");
    const Target target(handle);
    if (target.state == CUDA_SUCCESS) *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return target.state;
}

EMULATED_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    EMULATED_COUNT("cuThreadExchangeStreamCaptureMode");
    thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(*mode, current);
    return CUDA_SUCCESS;
}

EMULATED_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    EMULATED_COUNT("cuLaunchHostFunc");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    emulated::driver::trace(BASCULE_EMULATED_HOST_FUNCTION, handle, nullptr, 0, "cuLaunchHostFunc");
    target.context->graph.submit(*target.stream, [function, data] { function(data); });
    return CUDA_SUCCESS;
}

EMULATED_API cuEventCreate(CUevent* handle, unsigned int flags) {
    EMULATED_COUNT("cuEventCreate");
    EMULATED_NEEDS_CONTEXT();
    Context* context = current_context();
    auto event = std::make_unique<Event>();
    event->context = context;
    event->event.timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *handle = reinterpret_cast<CUevent>(event.get());
    const std::lock_guard lock(context->mutex);
    context->events.emplace(event.get(), std::move(event));
    emulated::driver::trace(BASCULE_EMULATED_CREATE, nullptr, *handle, 0, "cuEventCreate");
    return CUDA_SUCCESS;
}

EMULATED_API cuEventDestroy(CUevent handle) {
    EMULATED_COUNT("cuEventDestroy");
    EMULATED_NEEDS_CONTEXT();
    Event* event = find_event(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_DESTROY, nullptr, handle, 0, "cuEventDestroy");
    Context* context = event->context;
    const std::lock_guard lock(context->mutex);
    context->events.erase(event);
    return CUDA_SUCCESS;
}

EMULATED_API cuEventRecord(CUevent event_handle, CUstream handle) {
    EMULATED_COUNT("cuEventRecord");
    const Target target(handle);
    if (target.state != CUDA_SUCCESS) return target.state;
    Event* event = find_event(event_handle);
    if (event == nullptr || event->context != target.context) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_RECORD, handle, event_handle, 0, "cuEventRecord");
    target.context->graph.record(event->event, *target.stream);
    return CUDA_SUCCESS;
}

EMULATED_API cuEventQuery(CUevent handle) {
    EMULATED_COUNT("cuEventQuery");
    EMULATED_NEEDS_CONTEXT();
    Event* event = find_event(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->context->graph.query(event->event)) return CUDA_ERROR_NOT_READY;
    return event->context->error.load();
}

EMULATED_API cuEventSynchronize(CUevent handle) {
    EMULATED_COUNT("cuEventSynchronize");
    EMULATED_NEEDS_CONTEXT();
    Event* event = find_event(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_SYNCHRONIZE, nullptr, handle, 0, "cuEventSynchronize");
    event->context->graph.synchronize(event->event);
    return event->context->error.load();
}

EMULATED_API cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    EMULATED_COUNT("cuEventElapsedTime");
    EMULATED_NEEDS_CONTEXT();
    Event* start = find_event(start_handle);
    Event* end = find_event(end_handle);
    if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const bool timed =
        start->event.timing && end->event.timing && start->event.recorded && end->event.recorded;
    if (!timed) return CUDA_ERROR_INVALID_HANDLE;
    if (start->event.node != nullptr || end->event.node != nullptr) return CUDA_ERROR_NOT_READY;
    *milliseconds =
        std::chrono::duration<float, std::milli>(end->event.finished - start->event.finished).count();
    return CUDA_SUCCESS;
}
