// A graph, its executable graph, and what both need. Launches keep them alive together.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

/// The result of one capture. Pending launches share it with the graph.
struct Graph::Content {
    explicit Content(Device where) : device(where) {}
    ~Content() {
        if (graph == nullptr && exec == nullptr) return;
        end_in_context(device, [&](const Driver& driver) {
            if (exec != nullptr) driver.report(driver.api().cuGraphExecDestroy(exec), "destroying a graph");
            if (graph != nullptr) driver.report(driver.api().cuGraphDestroy(graph), "destroying a graph");
        });
    }
    Content(Content&&) = delete;

    Device device;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;  // null before the first launch
    GraphNeeds needs;
    /// The number of places in a stream's queue that a launch counts for: one per node, at most a sixth of most_places.
    std::uint32_t operations = 1;
};

/// Keeps the content alive for a launch, or for a graph that has this one as a child.
struct Graph::Share {
    std::shared_ptr<Content> content;
};

struct Graph::Capture {
    Capture(std::shared_ptr<Content> made, std::uint64_t id)
        : content(std::move(made)), noted(id, content->needs) {}
    std::shared_ptr<Content> content;
    NotedCapture noted;
};

namespace {

[[noreturn]] void fail_state(const char* message) {
    throw ArgumentError(ArgumentError::Kind::value, message, {.field = "graph"});
}

/// Adds the graph as a child node to the graph that `stream` is being captured into, after the nodes captured so far.
void add_child(const Driver& driver, CUgraph child, StreamRef stream) {
    const DriverFunctions& api = driver.api();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph parent = nullptr;
    const CUgraphNode* before = nullptr;
    std::size_t count = 0;
    driver.check(api.cuStreamGetCaptureInfo(stream.native(), &status, nullptr, &parent, &before, &count),
                 fmt::format("asking for the capture of {}", name_of_stream(stream.handle())));
    CUgraphNode node = nullptr;
    driver.check(api.cuGraphAddChildGraphNode(&node, parent, before, count, child),
                 "adding a graph to the one that is being captured");
    driver.check(
        api.cuStreamUpdateCaptureDependencies(stream.native(), &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
        "adding a graph to the one that is being captured");
}

}  // namespace

Graph::Graph(Device device) : stream_(device) {}

Graph::~Graph() { cancel(); }

void Graph::begin() {
    if (capture_ != nullptr) {
        fail_state("the graph is being captured already: end that capture first (leave the `with` block).");
    }
    auto content = std::make_shared<Content>(device());
    const Driver& driver = Driver::get();
    const ContextGuard context(device().context());
    // The thread-local mode lets other threads call functions that captures forbid.
    driver.check(driver.api().cuStreamBeginCapture(stream().native(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                 "beginning to capture a graph");
    try {
        capture_ = std::make_unique<Capture>(std::move(content), capture_of(stream()).id);
    } catch (...) {
        CUgraph none = nullptr;
        if (driver.api().cuStreamEndCapture(stream().native(), &none) == CUDA_SUCCESS)
            driver.api().cuGraphDestroy(none);
        throw;
    }
}

void Graph::end() {
    if (capture_ == nullptr) fail_state("the graph is not being captured: call begin first.");
    const std::unique_ptr<Capture> capture = std::exchange(capture_, nullptr);
    const std::shared_ptr<Content>& made = capture->content;
    const Driver& driver = Driver::get();
    const ContextGuard context(device().context());
    const DriverResult code = driver.api().cuStreamEndCapture(stream().native(), &made->graph);
    if (code == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
        driver.check(code,
                     "ending the capture of a graph, because another stream waited for an event of the "
                     "capture and graph.stream did not wait for that stream in turn,");
    }
    driver.check(code, "ending the capture of a graph");
    if (content_ != nullptr && content_->exec != nullptr) {
        CUgraphExecUpdateResultInfo info = {};
        if (driver.api().cuGraphExecUpdate(content_->exec, made->graph, &info) == CUDA_SUCCESS) {
            made->exec = std::exchange(content_->exec, nullptr);
            ++updates_;
        }
    }
    content_ = made;
    made->operations = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(size(), 1, most_places / 6));
}

void Graph::cancel() noexcept {
    if (capture_ == nullptr) return;
    const std::unique_ptr<Capture> capture = std::exchange(capture_, nullptr);
    end_in_context(device(), [&](const Driver& driver) {
        // The capture has ended whatever this returns, even if it was invalidated.
        driver.api().cuStreamEndCapture(stream().native(), &capture->content->graph);
    });
}

void Graph::launch(StreamRef stream) {
    if (capture_ != nullptr) fail_state("the graph is being captured: launch it after the `with` block.");
    if (content_ == nullptr) fail_state("the graph is empty: capture something first, `with graph: ...`.");
    const Owner share{new Share{content_}, &delete_owners<Share>};
    Owners owners(share);
    owners.operations = content_->operations;
    OwnersKept kept(stream, owners);
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    std::vector<Producer> needed = content_->needs.producers;
    // Arrays made in the capture are bound to its stream, so a later reader waits for that stream.
    if (content_->needs.own_stream) needed.push_back({.stream = {.handle = this->stream().handle()}});
    const ProducersToOrder producers(stream, needed);
    const bool is_child =
        !producers.found_no_capture() && capture_of(stream).status == CaptureState::Status::active;
    if (content_->exec == nullptr && !is_child) {
        driver.check(driver.api().cuGraphInstantiateWithFlags(&content_->exec, content_->graph, 0),
                     "making a graph executable");
    }
    TracedCall call(CallKind::graph_launch, [] { return "launch graph"; });
    wait_for_producers(stream, producers.get());
    call.begin_operation(stream);
    if (is_child) {
        add_child(driver, content_->graph, stream);
    } else {
        driver.check(driver.api().cuGraphLaunch(content_->exec, stream.native()), stream.native(),
                     "launching a graph");
    }
    call.end_operation();
    order_producers_after(stream, producers.get());
    kept.keep_now(StreamFacts::in_context);
}

void Graph::visit_owners(const std::function<void(const Owner&)>& visit) const {
    if (content_ != nullptr) visit_owners(content_, visit);
}

void Graph::visit_owners(const std::shared_ptr<Content>& content,
                         const std::function<void(const Owner&)>& visit) {
    if (content.use_count() != 1) return;
    for (const Owner& owner : content->needs.owners) {
        if (owner.release == &delete_owners<Share>) {
            visit_owners(static_cast<const Share*>(owner.object)->content, visit);
        } else {
            visit(owner);
        }
    }
}

std::size_t Graph::size() const {
    if (content_ == nullptr) return 0;
    std::size_t count = 0;
    const Driver& driver = Driver::get();
    driver.check(driver.api().cuGraphGetNodes(content_->graph, nullptr, &count),
                 "counting a graph's operations");
    return count;
}

}  // namespace bascule
