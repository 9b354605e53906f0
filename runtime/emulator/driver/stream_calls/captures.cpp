// Stream capture: beginning, ending and querying it, and the calls that it forbids.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "driver/graph_nodes.hpp"

namespace emulated::driver {
using streams::CaptureInfo;
using streams::Captures;
using streams::Refusal;

namespace {

/// True if each edge is a full dependency; other edges cannot be captured here.
bool is_plain(const CUgraphEdgeData* data, std::size_t count) noexcept {
    constexpr CUgraphEdgeData zeros = {};
    return data == nullptr || std::all_of(data, data + count, [&](const CUgraphEdgeData& each) {
               return std::memcmp(&each, &zeros, sizeof each) == 0;
           });
}

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// Reads the mode as a number, because callers pass invalid modes.
bool is_mode(const CUstreamCaptureMode* mode) noexcept {
    unsigned number = 0;
    static_assert(sizeof number == sizeof *mode);
    std::memcpy(&number, mode, sizeof number);
    return number <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

/// Reports which call was refused, because the error code alone does not say it.
void refuse_capture(Refusal refusal, const char* name, const char* reason) {
    if (refusal == Refusal::none) return;
    refuse(to_result(refusal), "{}: {}", name, reason);
}

}  // namespace

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
    return find_object<GraphObject>(info.graph);
}

void unsafe_now(const char* name) {
    if (!Captures::any()) return;
    const auto mode = static_cast<streams::CaptureMode>(thread_mode);
    return refuse_capture(Captures::get().unsafe(thread_number(), mode), name,
                          "not while a stream is being captured, because captures do not see such calls; "
                          "cuThreadExchangeStreamCaptureMode(RELAXED) allows those that they do not need");
}

void no_capture_now(const StreamTarget& target, const char* name) {
    if (!Captures::any()) return;
    return refuse_capture(Captures::get().ask(capture_target(target)), name,
                          "the stream is being captured, so nothing of it has been executed");
}

void no_capture_now(Event& event, const char* name) {
    if (!event.capture.exists()) return;
    return refuse_capture(Captures::get().ask(event.capture), name,
                          "the event was last recorded on a stream that was captured");
}

/// If the stream itself is not captured, the query is allowed where unsafe calls are allowed.
void question_now(const StreamTarget& target, const char* name) {
    no_capture_now(target, name);
    return unsafe_now(name);
}

void question_now(const Context& context, const char* name) {
    if (!Captures::any()) return;
    refuse_capture(Captures::get().ask_context(&context), name, "a stream of the context is being captured");
    return unsafe_now(name);
}

void question_now(Event& event, const char* name) {
    no_capture_now(event, name);
    return unsafe_now(name);
}

EMULATED_STREAM_API(cuStreamBeginCapture, 10010, CUstream handle, CUstreamCaptureMode mode) {
    const auto target = find_stream(handle);
    require(is_mode(&mode));
    auto graph = make_graph();
    check(to_result(Captures::get().begin(capture_target(target), static_cast<streams::CaptureMode>(mode),
                                          thread_number(), graph)));
    Process::get().handles().add(std::move(graph));
}

/// The graph stays the client's, whatever happens to the capture.
EMULATED_STREAM_API(cuStreamBeginCaptureToGraph, 12030, CUstream handle, CUgraph graph_handle,
                    const CUgraphNode* dependencies, const CUgraphEdgeData* data, std::size_t count,
                    CUstreamCaptureMode mode) {
    const auto target = find_stream(handle);
    const auto graph = find_object<GraphObject>(graph_handle);
    require(graph != nullptr && is_mode(&mode) && is_plain(data, count));
    const auto after = nodes_of(*graph, dependencies, count);
    require(after.has_value());
    check(to_result(Captures::get().begin(capture_target(target), static_cast<streams::CaptureMode>(mode),
                                          thread_number(), graph, *after)));
}

EMULATED_STREAM_API(cuStreamEndCapture, 10000, CUstream handle, CUgraph* out) {
    const streams::DueDestructors due;
    const auto target = find_stream(handle);
    require(out != nullptr);
    *out = nullptr;
    CaptureInfo info;
    Captures::get().info(capture_target(target), info);
    std::shared_ptr<streams::WorkGraph> graph;
    const CUresult result = to_result(Captures::get().end(capture_target(target), thread_number(), graph));
    const bool over = result != CUDA_ERROR_ILLEGAL_STATE && result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
                      result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (result == CUDA_SUCCESS) {
        *out = handle_of(graph.get());
    } else if (over && !info.is_clients) {
        if (const auto lost = find_object<GraphObject>(info.graph)) withdraw(*lost);
    }
    check(result);
}

EMULATED_STREAM_API(cuStreamIsCapturing, 10000, CUstream handle, CUstreamCaptureStatus* status) {
    if (!Captures::any()) {
        check(stream_state(handle));
        return answer(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
    const auto target = find_stream(handle);
    require(status != nullptr);
    CaptureInfo info;
    check(to_result(Captures::get().info(capture_target(target), info)));
    return answer(status, static_cast<CUstreamCaptureStatus>(info.status));
}

/// Without a valid capture only the status is written. All edges are full dependencies, whose data is zeros. The arrays are
/// valid until the thread's next call of this function.
EMULATED_STREAM_API(cuStreamGetCaptureInfo, 12030, CUstream handle, CUstreamCaptureStatus* status,
                    cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,
                    const CUgraphEdgeData** edges, std::size_t* dependency_count) {
    const auto target = find_stream(handle);
    require(status != nullptr && (edges == nullptr || dependencies != nullptr));
    CaptureInfo info;
    if (Captures::any()) check(to_result(Captures::get().info(capture_target(target), info)));
    *status = static_cast<CUstreamCaptureStatus>(info.status);
    if (info.status != CaptureInfo::Status::active) return;
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = handle_of(info.graph);
    thread_local std::vector<CUgraphNode> nodes;
    thread_local std::vector<CUgraphEdgeData> data;
    nodes.clear();
    for (const streams::WorkNode* node : info.ends) nodes.push_back(handle_of(node));
    nodes.push_back(nullptr);  // so that there is an array even without nodes
    data.assign(nodes.size(), {});
    if (dependencies != nullptr) *dependencies = nodes.data();
    if (edges != nullptr) *edges = data.data();
    if (dependency_count != nullptr) *dependency_count = info.ends.size();
}

EMULATED_STREAM_API(cuStreamUpdateCaptureDependencies, 12030, CUstream handle, CUgraphNode* dependencies,
                    const CUgraphEdgeData* data, std::size_t count, unsigned int flags) {
    const auto target = find_stream(handle);
    require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES && is_plain(data, count));
    CaptureInfo info;
    check(to_result(Captures::get().info(capture_target(target), info)));
    require(info.status != CaptureInfo::Status::none, CUDA_ERROR_ILLEGAL_STATE);
    require(info.status == CaptureInfo::Status::active, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const auto nodes = nodes_of(*info.graph, dependencies, count);
    require(nodes.has_value());
    check(to_result(Captures::get().come_after(capture_target(target), *nodes,
                                               flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)));
}

EMULATED_API(cuThreadExchangeStreamCaptureMode, 10010, CUstreamCaptureMode* mode) {
    require(mode != nullptr && is_mode(mode));
    std::swap(*mode, thread_mode);
}

}  // namespace emulated::driver
