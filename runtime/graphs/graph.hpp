// Graphs: work that is captured once and launched any number of times.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {

/// What is issued on `stream()` between `begin` and `end` is not executed but captured: launches, copies,
/// fills, events, and what other streams do that wait for its events and are waited for in turn. `launch`
/// then executes all of it.
///
///     Graph graph;
///     graph.begin();
///     kernel.launch(graph.stream(), config, arguments);
///     graph.end();
///     graph.launch(stream);
///
/// Arrays may name streams that are not part of the capture: each launch of the graph waits for what those
/// streams have enqueued then, and they wait for the launch, as for a launch of one kernel. The owners of
/// what was captured are kept until the graph is gone, or captures anew, and its last launch is done.
///
/// One thread at a time may use it; the one that began ends. Two launches of one graph follow each other, on
/// whatever streams they are, unless it captured something of another shape between them.
class Graph {
  public:
    /// Throws: CudaError.
    explicit Graph(Device device = Device::current());
    /// Never throws. A capture that was not ended is cancelled. Launches go on.
    ~Graph();
    Graph(Graph&&) = delete;

    Device device() const noexcept { return stream_.ref().device(); }
    /// Work issued here is captured, not run.
    StreamRef stream() const noexcept { return stream_; }

    /// Begins a capture. What was captured before stays until `end`. Throws: CudaError when
    /// the stream is being captured; ArgumentError when this was begun and not ended.
    void begin();
    /// Later launches do what was captured. The executable graph is updated where the new graph has the same
    /// shape, which is much cheaper than making another. Throws: CudaError when the
    /// capture was invalidated, or is not joined; then the graph is as it was before `begin`.
    void end();
    /// Discards what was captured since `begin`.
    void cancel() noexcept;
    bool capturing() const noexcept { return capture_ != nullptr; }

    /// Enqueues the whole graph; the first launch makes it executable. On a stream that is being captured it becomes one
    /// operation of that graph instead: a child, which is what this graph is now, whatever it captures later. The other
    /// graph then waits for the streams that this one names, and keeps its owners. Throws: CudaError; ArgumentError when
    /// nothing was captured, a capture of this graph is going on, or another library captures and a stream that this graph
    /// names is not part of that.
    void launch(StreamRef stream);

    /// Operations that were captured.
    std::size_t size() const;
    /// The owners of what was captured, those of children too; none while a launch of it may go on, and none of a child that
    /// others have too.
    void visit_owners(const std::function<void(const Owner&)>& visit) const;
    /// How often `end` has updated the executable graph, for tests.
    std::size_t updates() const noexcept { return updates_; }

  private:
    struct Capture;
    struct Content;
    struct Share;
    static void visit_owners(const std::shared_ptr<Content>& content,
                             const std::function<void(const Owner&)>& visit);

    Stream stream_;
    std::unique_ptr<Capture> capture_;  // between begin and end
    std::shared_ptr<Content> content_;  // null before the first end; launches keep it
    std::size_t updates_ = 0;
};

}  // namespace bascule
