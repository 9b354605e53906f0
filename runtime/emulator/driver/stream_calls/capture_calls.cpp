// Stream capture: the functions that begin, end and query it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "driver/graph_nodes.hpp"

namespace emulated::driver {
using streams::CaptureInfo;
using streams::Captures;

namespace {

/// True if each edge is a full dependency; other edges cannot be captured here.
bool is_plain(const CUgraphEdgeData* data, std::size_t count) noexcept {
    constexpr CUgraphEdgeData zeros = {};
    return data == nullptr || std::all_of(data, data + count, [&](const CUgraphEdgeData& each) {
               return std::memcmp(&each, &zeros, sizeof each) == 0;
           });
}

/// True for a valid mode. Reads it as a number, because callers pass invalid modes.
bool is_mode(const CUstreamCaptureMode* mode) noexcept {
    unsigned number = 0;
    static_assert(sizeof number == sizeof *mode);
    std::memcpy(&number, mode, sizeof number);
    return number <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

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
    check(to_result(Captures::get().begin(capture_target(target), static_cast<streams::CaptureMode>(mode),
                                          thread_number(), graph, nodes_of(*graph, dependencies, count))));
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
    check(to_result(Captures::get().come_after(capture_target(target), nodes,
                                               flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)));
}

EMULATED_API(cuThreadExchangeStreamCaptureMode, 10010, CUstreamCaptureMode* mode) {
    require(mode != nullptr && is_mode(mode));
    std::swap(*mode, thread_capture_mode());
}

}  // namespace emulated::driver
