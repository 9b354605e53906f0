// Semantics: CUDA driver API documentation, "Stream synchronization behavior" (legacy default stream) and the
// event functions.
#include "streams/graph.hpp"

#include <algorithm>

namespace emulated::streams {
namespace {

thread_local bool inside_a_node = false;

bool is_done(const std::shared_ptr<Node>& node) noexcept {
    return node == nullptr || node->state == Node::State::done;
}

/// A finished mark becomes a time, so that no node outlives its use.
void settle(Event& event) noexcept {
    if (event.node == nullptr || !is_done(event.node)) return;
    event.finished = event.node->finished;
    event.node = nullptr;
}

/// Work that throws would leave the graph waiting for ever.
void call(const std::function<void()>& work) noexcept {
    inside_a_node = true;
    work();
    inside_a_node = false;
}

}  // namespace

bool Scheduler::inside() noexcept { return inside_a_node; }

// Iterative: chains grow as long as nobody synchronises.
void Scheduler::force(Lock& lock, const std::shared_ptr<Node>& node) {
    std::vector<std::shared_ptr<Node>> stack = {node};
    while (!stack.empty()) {
        const std::shared_ptr<Node> current = stack.back();
        if (is_done(current)) {
            stack.pop_back();
            continue;
        }
        if (current->state == Node::State::running) {
            changed_.wait(lock, [&] { return is_done(current); });
            continue;
        }
        const auto waiting = std::find_if(current->after.begin(), current->after.end(),
                                          [](const auto& n) { return !is_done(n); });
        if (waiting != current->after.end()) {
            stack.push_back(*waiting);
        } else if (exclusive_ > 0) {
            changed_.wait(lock, [&] { return exclusive_ == 0; });  // and look again: another may have run it
        } else {
            run(lock, *current);
        }
    }
}

void Scheduler::run(Lock& lock, Node& node) {
    node.state = Node::State::running;
    if (node.work != nullptr) {
        ++running_;
        lock.unlock();
        call(node.work);
        node.work = nullptr;  // outside the lock: it may own much
        lock.lock();
        --running_;
        node.finished = Clock::now();
    } else {
        // A mark is passed when the last operation before it ends, however late somebody looks.
        for (const auto& before : node.after) node.finished = std::max(node.finished, before->finished);
    }
    node.after.clear();
    node.state = Node::State::done;
    changed_.notify_all();
}

void Graph::add(Stream& stream) {
    const Scheduler::Lock lock(scheduler_.mutex_);
    streams_.push_back(&stream);
}

void Graph::remove(Stream& stream) {
    Scheduler::Lock lock(scheduler_.mutex_);
    for (const auto& node : unfinished_before(stream)) scheduler_.force(lock, node);
    std::erase(streams_, &stream);
}

/// What the next operation on `stream` comes after, as far as it is not done yet.
Graph::Nodes Graph::unfinished_before(Stream& stream) {
    Nodes before;
    const auto add_tail = [&](Stream& each) {
        if (is_done(each.tail)) {
            each.tail = nullptr;
        } else {
            before.push_back(each.tail);
        }
    };
    add_tail(stream);
    if (stream.legacy) {
        for (Stream* other : streams_) {
            if (other->blocking) add_tail(*other);
        }
    } else if (stream.blocking) {
        add_tail(legacy_);
    }
    return before;
}

std::shared_ptr<Node> Graph::append(Stream& stream, Nodes after, std::function<void()> work) {
    auto node = std::make_shared<Node>();
    node->after = std::move(after);
    node->work = std::move(work);
    stream.tail = node;
    return node;
}

void Graph::submit(Stream& stream, std::function<void()> work) {
    Scheduler::Lock lock(scheduler_.mutex_);
    const auto node = append(stream, unfinished_before(stream), std::move(work));
    if (scheduler_.policy_ == Policy::eager) scheduler_.force(lock, node);
}

void Graph::record(Event& event, Stream& stream) {
    const Scheduler::Lock lock(scheduler_.mutex_);
    event.recorded = true;
    event.node = nullptr;
    event.finished = Clock::now();
    // Under `eager` something is unfinished here only while another thread runs it; the mark then waits for
    // it.
    Nodes before = unfinished_before(stream);
    if (!before.empty()) event.node = append(stream, std::move(before), nullptr);
}

void Graph::wait(Stream& stream, Event& event) {
    const Scheduler::Lock lock(scheduler_.mutex_);
    settle(event);
    if (event.node == nullptr) return;
    Nodes before = unfinished_before(stream);
    before.push_back(event.node);
    append(stream, std::move(before), nullptr);
}

void Graph::synchronize(Stream& stream) {
    Scheduler::Lock lock(scheduler_.mutex_);
    for (const auto& node : unfinished_before(stream)) scheduler_.force(lock, node);
}

void Graph::synchronize(Event& event) {
    Scheduler::Lock lock(scheduler_.mutex_);
    if (const auto node = event.node) scheduler_.force(lock, node);
    settle(event);
}

void Graph::synchronize_all() {
    Scheduler::Lock lock(scheduler_.mutex_);
    Nodes nodes = unfinished_before(legacy_);
    for (const Stream* stream : streams_) {
        if (!is_done(stream->tail)) nodes.push_back(stream->tail);
    }
    for (const auto& node : nodes) scheduler_.force(lock, node);
}

/// Whether a node is done, after giving it its chance to run.
bool Graph::poll(Scheduler::Lock& lock, const std::shared_ptr<Node>& node) {
    const bool elsewhere = scheduler_.running_ > 0;
    const bool is_mark = node->work == nullptr;
    if (elsewhere && !(is_mark && std::all_of(node->after.begin(), node->after.end(), is_done)))
        return is_done(node);
    scheduler_.force(lock, node);
    return true;
}

bool Graph::query(Stream& stream) {
    Scheduler::Lock lock(scheduler_.mutex_);
    for (const auto& node : unfinished_before(stream)) {
        if (!poll(lock, node)) return false;
    }
    return true;
}

bool Graph::query(Event& event) {
    Scheduler::Lock lock(scheduler_.mutex_);
    if (const auto node = event.node; node != nullptr && !poll(lock, node)) return false;
    settle(event);
    return true;
}

float Graph::milliseconds(const Event& start, const Event& end) noexcept {
    return std::chrono::duration<float, std::milli>(end.finished - start.finished).count();
}

}  // namespace emulated::streams
