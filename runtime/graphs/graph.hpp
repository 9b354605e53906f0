// Graphs: work that is captured once and launched any number of times.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {

/// Captures work instead of executing it. Everything issued on `stream()` between `begin` and `end` becomes part of the
/// graph: launches, copies, fills, events, and work of other streams that wait for its events and that it waits for.
/// `launch` then executes all of it.
///
///     Graph graph;
///     graph.begin();
///     kernel.launch(graph.stream(), config, arguments);
///     graph.end();
///     graph.launch(stream);
///
/// Arrays may name streams that are not part of the capture. Each launch of the graph then waits for all work enqueued
/// so far on those streams, and they wait for the launch, like for a launch of one kernel. The owners of captured
/// memory are kept until the graph is destroyed or captures again, and its last launch is done.
///
/// Only one thread at a time may use a graph, and the thread that calls `begin` must call `end`. Launches of one graph
/// run one after another, even on different streams, unless a new capture between them changed its shape.
class Graph {
  public:
    /// Throws: CudaError.
    explicit Graph(Device device = Device::current());
    /// Never throws. Cancels a capture that was not ended. Launches continue.
    ~Graph();
    Graph(Graph&&) = delete;

    Device device() const noexcept { return stream_.ref().device(); }
    /// The stream whose work is captured.
    StreamRef stream() const noexcept { return stream_; }

    /// Begins a capture. The former graph stays valid until `end`. Throws: CudaError if the stream is being captured;
    /// ArgumentError if a capture has not been ended.
    void begin();
    /// Ends the capture. Later launches execute the new graph. If it has the same shape as the former one, the
    /// executable graph is updated, which is much cheaper than instantiating another. Throws: CudaError if the capture
    /// was invalidated or has unjoined streams; the graph is then the same as before `begin`.
    void end();
    /// Discards the capture.
    void cancel() noexcept;
    bool capturing() const noexcept { return capture_ != nullptr; }

    /// Enqueues the whole graph. The first launch instantiates it. On a capturing stream, the graph becomes a child node of
    /// the other graph instead, with its present content. The other graph then waits for the streams that this one names, and
    /// keeps its owners. Throws: CudaError; ArgumentError if nothing was captured, if this graph is being captured, or if
    /// another library captures `stream` and a stream that this graph names is not part of its capture.
    void launch(StreamRef stream);

    /// The number of captured operations.
    std::size_t size() const;
    /// Visits the owners of captured memory, including child graphs. Visits nothing while a launch may still run; skips
    /// children shared with other graphs.
    void visit_owners(const std::function<void(const Owner&)>& visit) const;
    /// The number of times that `end` has updated the executable graph. For tests.
    std::size_t updates() const noexcept { return updates_; }

  private:
    struct Capture;
    struct Content;
    struct Share;
    static void visit_owners(const std::shared_ptr<Content>& content,
                             const std::function<void(const Owner&)>& visit);

    Stream stream_;
    std::unique_ptr<Capture> capture_;  // between begin and end
    std::shared_ptr<Content> content_;  // null before the first end; launches share it
    std::size_t updates_ = 0;
};

}  // namespace bascule
