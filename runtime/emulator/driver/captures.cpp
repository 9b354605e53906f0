// The checks of captures that each call makes before it does anything.
#include "driver/captures.hpp"

namespace emulated::driver {
using streams::CaptureInfo;
using streams::Captures;
using streams::Refusal;

namespace {

/// Reports which call was refused, because the error code alone does not say it.
void refuse_capture(Refusal refusal, const char* name, const char* reason) {
    if (refusal == Refusal::none) return;
    refuse(to_result(refusal), "{}: {}", name, reason);
}

}  // namespace

CUstreamCaptureMode& thread_capture_mode() noexcept {
    thread_local constinit CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return mode;
}

streams::CaptureTarget capture_target(const StreamTarget& target) noexcept {
    if (target.owner == nullptr) return {nullptr, target.context, true};
    return {&target.owner->capture, target.context, target.owner->stream.blocking};
}

void CaptureGate::ask() {
    const Captures::Use use = Captures::get().use(capture_target(target_));
    check(to_result(use.refusal));
    captures_ = use.captured;
}

void CaptureGate::add(streams::WorkNode node) const {
    check(to_result(
        Captures::get().add(capture_target(target_), std::make_shared<streams::WorkNode>(std::move(node)))));
}

std::shared_ptr<streams::WorkGraph> CaptureGate::graph() const {
    CaptureInfo info;
    Captures::get().info(capture_target(target_), info);
    auto graph = find_object<GraphObject>(info.graph);
    require(graph != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return graph;
}

void unsafe_now(const char* name) {
    if (!Captures::any()) return;
    const auto mode = static_cast<streams::CaptureMode>(thread_capture_mode());
    return refuse_capture(Captures::get().unsafe(thread_number(), mode), name,
                          "not while a stream is being captured, because captures do not see such calls; "
                          "cuThreadExchangeStreamCaptureMode(RELAXED) allows those that they do not need");
}

void no_capture_now(const StreamTarget& target, const char* name) {
    if (!Captures::any()) return;
    return refuse_capture(Captures::get().ask(capture_target(target)), name,
                          "the stream is being captured, so nothing of it has been executed");
}

void no_capture_now(const Context& context, const char* name) {
    if (!Captures::any()) return;
    return refuse_capture(Captures::get().ask_context(&context), name,
                          "a stream of the context is being captured");
}

void no_capture_now(Event& event, const char* name) {
    if (!event.capture.exists()) return;
    return refuse_capture(Captures::get().ask(event.capture), name,
                          "the event was last recorded on a stream that was captured");
}

}  // namespace emulated::driver
