// Semantics: CUDA driver API documentation, "Stream synchronization behavior" (legacy default stream) and the
// event functions.
#include "streams/graph.hpp"

#include <algorithm>

namespace emulated::streams {

void Graph::add(Stream& stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(&stream);
}

void Graph::remove(Stream& stream) {
    const std::lock_guard lock(mutex_);
    force_tail(stream);
    std::erase(streams_, &stream);
}

/// What the next operation on `stream` comes after. The legacy stream waits for every blocking stream, and
/// they for it.
std::vector<std::shared_ptr<Node>> Graph::predecessors(const Stream& stream) const {
    std::vector<std::shared_ptr<Node>> before;
    if (stream.tail != nullptr) before.push_back(stream.tail);
    if (stream.legacy) {
        for (const Stream* other : streams_) {
            if (other->blocking && other->tail != nullptr) before.push_back(other->tail);
        }
    } else if (stream.blocking && legacy_.tail != nullptr) {
        before.push_back(legacy_.tail);
    }
    return before;
}

void Graph::append(Stream& stream, std::function<void()> work) {
    auto node = std::make_shared<Node>();
    node->after = predecessors(stream);
    node->work = std::move(work);
    stream.tail = std::move(node);
}

void Graph::submit(Stream& stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (policy_ == Policy::eager) {
        work();  // everything before it has run already
        return;
    }
    append(stream, std::move(work));
}

void Graph::record(Event& event, Stream& stream) {
    const std::lock_guard lock(mutex_);
    event.recorded = true;
    event.node = nullptr;
    event.finished = Clock::now();
    if (policy_ == Policy::eager) return;
    append(stream, [] {});
    event.node = stream.tail;
}

void Graph::wait(Stream& stream, const Event& event) {
    const std::lock_guard lock(mutex_);
    if (event.node == nullptr || event.node->done) return;
    append(stream, [] {});
    stream.tail->after.push_back(event.node);
}

/// Runs a node after everything that it comes after. Iterative: chains grow as long as nobody synchronises.
void Graph::force(const std::shared_ptr<Node>& node) {
    std::vector<std::shared_ptr<Node>> pending = {node};
    while (!pending.empty()) {
        const std::shared_ptr<Node> current = pending.back();
        if (current->done) {
            pending.pop_back();
            continue;
        }
        const auto waiting = std::find_if(current->after.begin(), current->after.end(),
                                          [](const std::shared_ptr<Node>& before) { return !before->done; });
        if (waiting != current->after.end()) {
            pending.push_back(*waiting);
            continue;
        }
        pending.pop_back();
        current->work();
        current->work = nullptr;
        current->after.clear();
        current->done = true;
        current->finished = Clock::now();
    }
}

void Graph::force_tail(Stream& stream) {
    // The legacy stream's own tail does not cover what blocking streams have pending since.
    for (const std::shared_ptr<Node>& node : predecessors(stream)) force(node);
    stream.tail = nullptr;
}

void Graph::synchronize(Stream& stream) {
    const std::lock_guard lock(mutex_);
    force_tail(stream);
}

void Graph::synchronize(Event& event) {
    const std::lock_guard lock(mutex_);
    if (event.node == nullptr) return;
    force(event.node);
    event.finished = event.node->finished;
    event.node = nullptr;
}

void Graph::synchronize_all() {
    const std::lock_guard lock(mutex_);
    force_tail(legacy_);
    for (Stream* stream : streams_) force_tail(*stream);
}

bool Graph::query(Stream& stream) {
    synchronize(stream);
    return true;
}

bool Graph::query(Event& event) {
    synchronize(event);
    return true;
}

}  // namespace emulated::streams
