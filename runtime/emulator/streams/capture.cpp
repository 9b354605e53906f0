// Semantics: CUDA driver API documentation, "Stream Management" (cuStreamBeginCapture and the functions that
// it names), and the CUDA programming guide, "Creating a Graph Using Stream Capture".
#include "streams/capture.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace emulated::streams {

/// A capture from its begin to its end. Guarded by Captures.
struct CaptureSequence {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::uint64_t thread = 0;
    CapturingStream* origin = nullptr;
    std::vector<CapturingStream*> members;  // including the stream that began it
    std::shared_ptr<WorkGraph> graph;
    std::vector<const WorkNode*> captured;  // the nodes that must be joined before the end
    bool is_clients = false;                // the graph existed before and stays
    bool valid = true;
    bool over = false;
};

namespace {

void merge(std::vector<WorkNode*>& into, const std::vector<WorkNode*>& more) {
    for (WorkNode* node : more) {
        if (std::ranges::find(into, node) == into.end()) into.push_back(node);
    }
}

/// `ends` and all nodes that precede them.
std::unordered_set<const WorkNode*> reached(const std::vector<WorkNode*>& ends) {
    std::unordered_set<const WorkNode*> seen(ends.begin(), ends.end());
    std::vector<const WorkNode*> open(ends.begin(), ends.end());
    while (!open.empty()) {
        const WorkNode* node = open.back();
        open.pop_back();
        for (const Dependency& before : node->after) {
            if (seen.insert(before.node).second) open.push_back(before.node);
        }
    }
    return seen;
}

}  // namespace

CapturingStream::~CapturingStream() {
    if (Captures::any()) Captures::get().abandon(*this);
}

Captures& Captures::get() {
    static Captures& captures = *new Captures;  // streams of threads that end late use it
    return captures;
}

Refusal Captures::begin(const CaptureTarget& target, CaptureMode mode, std::uint64_t thread,
                        std::shared_ptr<WorkGraph> graph, std::optional<std::vector<WorkNode*>> after) {
    const std::lock_guard lock(mutex_);
    if (target.stream == nullptr) return Refusal::unsupported;
    if (target.stream->sequence_ != nullptr || fills(*graph)) return Refusal::illegal_state;
    auto sequence = std::make_shared<CaptureSequence>();
    sequence->id = next_id_++;
    sequence->mode = mode;
    sequence->thread = thread;
    sequence->origin = target.stream;
    sequence->is_clients = after.has_value();
    sequence->graph = std::move(graph);
    join(target, sequence);
    if (after) target.stream->ends_ = *std::move(after);
    sequences_.push_back(std::move(sequence));
    ongoing_.fetch_add(1);
    return Refusal::none;
}

void Captures::join(const CaptureTarget& target, const std::shared_ptr<CaptureSequence>& sequence) {
    target.stream->sequence_ = sequence;
    target.stream->context_ = target.context;
    target.stream->blocking_ = target.blocking;
    sequence->members.push_back(target.stream);
}

Refusal Captures::end(const CaptureTarget& target, std::uint64_t thread, std::shared_ptr<WorkGraph>& graph) {
    const std::lock_guard lock(mutex_);
    graph = nullptr;
    if (target.stream == nullptr || target.stream->sequence_ == nullptr) return Refusal::illegal_state;
    const std::shared_ptr<CaptureSequence> sequence = target.stream->sequence_;
    if (sequence->origin != target.stream) return Refusal::unmatched;
    if (sequence->mode != CaptureMode::relaxed && sequence->thread != thread) return Refusal::wrong_thread;
    const auto joined_nodes = reached(target.stream->ends_);
    const bool joined = std::ranges::all_of(
        sequence->captured, [&](const WorkNode* node) { return joined_nodes.contains(node); });
    finish(*sequence);
    if (!sequence->valid) return Refusal::invalidated;
    if (!joined) return Refusal::unjoined;
    graph = sequence->graph;
    return Refusal::none;
}

void Captures::finish(CaptureSequence& sequence) {
    sequence.over = true;
    for (CapturingStream* member : sequence.members) {
        member->sequence_ = nullptr;
        member->ends_.clear();
    }
    sequence.members.clear();
    std::erase_if(sequences_, [&](const auto& each) { return each.get() == &sequence; });
    ongoing_.fetch_sub(1);
}

void Captures::abandon(CapturingStream& stream) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<CaptureSequence> sequence = stream.sequence_;
    if (sequence == nullptr) return;
    if (sequence->origin == &stream) {
        sequence->valid = false;
        finish(*sequence);
    } else {
        std::erase(sequence->members, &stream);
        stream.sequence_ = nullptr;
    }
}

/// Refuses the call if a capture for which `concerns` is true exists.
template <class Concerns>
Refusal Captures::refuse_where(Refusal refusal, bool invalidate, const Concerns& concerns) {
    Refusal found = Refusal::none;
    for (const auto& sequence : sequences_) {
        if (!concerns(*sequence)) continue;
        found = refusal;
        if (invalidate) sequence->valid = false;
    }
    return found;
}

/// The legacy default stream is ordered with every blocking stream of its context, so it cannot be used while one is
/// captured.
Refusal Captures::blocked_legacy(const void* context, bool invalidate) {
    const auto blocks = [&](const CapturingStream* member) {
        return member->blocking_ && member->context_ == context;
    };
    return refuse_where(Refusal::implicit, invalidate, [&](const CaptureSequence& sequence) {
        return std::ranges::any_of(sequence.members, blocks);
    });
}

Captures::Use Captures::use(const CaptureTarget& target) {
    const std::lock_guard lock(mutex_);
    if (target.stream == nullptr) return {blocked_legacy(target.context, true), false};
    const auto& sequence = target.stream->sequence_;
    if (sequence == nullptr) return {};
    return {sequence->valid ? Refusal::none : Refusal::invalidated, true};
}

Refusal Captures::add(const CaptureTarget& target, std::shared_ptr<WorkNode> node) {
    const std::lock_guard lock(mutex_);
    const auto& sequence = target.stream->sequence_;
    // Another thread may have ended or invalidated the capture meanwhile.
    if (sequence == nullptr || !sequence->valid) return Refusal::invalidated;
    for (WorkNode* each : std::exchange(target.stream->ends_, {node.get()}))
        node->after.push_back({each, {}});
    sequence->captured.push_back(node.get());
    sequence->graph->add(std::move(node));
    return Refusal::none;
}

/// If `instead` is true, the nodes on which the stream depended so far need not be joined any more; the client is
/// responsible for them.
Refusal Captures::come_after(const CaptureTarget& target, const std::vector<WorkNode*>& nodes, bool instead) {
    const std::lock_guard lock(mutex_);
    if (target.stream == nullptr || target.stream->sequence_ == nullptr) return Refusal::illegal_state;
    CaptureSequence& sequence = *target.stream->sequence_;
    if (!sequence.valid) return Refusal::invalidated;
    std::vector<WorkNode*>& ends = target.stream->ends_;
    if (instead) {
        const auto left = reached(ends);
        std::erase_if(sequence.captured, [&](const WorkNode* node) { return left.contains(node); });
        ends.clear();
    }
    merge(ends, nodes);
    return Refusal::none;
}

Refusal Captures::record(const CaptureTarget& target, CapturedMark& mark) {
    const std::lock_guard lock(mutex_);
    const auto& sequence = target.stream->sequence_;
    if (sequence == nullptr || !sequence->valid) return Refusal::invalidated;
    mark.sequence_ = sequence;
    mark.ends_ = target.stream->ends_;
    mark.exists_ = true;
    return Refusal::none;
}

void Captures::forget(CapturedMark& mark) {
    const std::lock_guard lock(mutex_);
    mark.exists_ = false;
    mark.sequence_ = nullptr;
    mark.ends_.clear();
}

Captures::Wait Captures::wait(const CaptureTarget& target, CapturedMark& mark) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<CaptureSequence> mine =
        target.stream == nullptr ? nullptr : target.stream->sequence_;
    const std::shared_ptr<CaptureSequence>& marked = mark.sequence_;
    const auto refuse = [&](Refusal refusal) {
        if (mine != nullptr) mine->valid = false;
        if (marked != nullptr) marked->valid = false;
        return Wait{refusal, true};
    };
    if (mine != nullptr && !mine->valid) return {Refusal::invalidated, true};
    if (marked == nullptr) {
        if (mine != nullptr) return refuse(Refusal::isolation);
        return {target.stream == nullptr ? blocked_legacy(target.context, true) : Refusal::none, false};
    }
    if (marked->over)
        return mine == nullptr ? Wait{Refusal::captured_event, true} : refuse(Refusal::isolation);
    if (!marked->valid) return {Refusal::invalidated, true};
    if (target.stream == nullptr) return refuse(Refusal::implicit);
    if (mine != nullptr && mine != marked) return refuse(Refusal::merge);
    if (mine == nullptr) join(target, marked);
    merge(target.stream->ends_, mark.ends_);
    return {Refusal::none, true};
}

Refusal Captures::ask(const CaptureTarget& target) {
    const std::lock_guard lock(mutex_);
    if (target.stream == nullptr) return blocked_legacy(target.context, true);
    const auto& sequence = target.stream->sequence_;
    if (sequence == nullptr) return Refusal::none;
    return std::exchange(sequence->valid, false) ? Refusal::unsupported : Refusal::invalidated;
}

Refusal Captures::ask(CapturedMark& mark) {
    const std::lock_guard lock(mutex_);
    if (mark.sequence_ == nullptr) return Refusal::none;
    mark.sequence_->valid = false;
    return Refusal::captured_event;
}

Refusal Captures::ask_context(const void* context) {
    const std::lock_guard lock(mutex_);
    return refuse_where(Refusal::unsupported, true, [&](const CaptureSequence& sequence) {
        return std::ranges::any_of(sequence.members,
                                   [&](const auto* member) { return member->context_ == context; });
    });
}

Refusal Captures::unsafe(std::uint64_t thread, CaptureMode mode) {
    if (mode == CaptureMode::relaxed) return Refusal::none;
    const std::lock_guard lock(mutex_);
    return refuse_where(Refusal::unsupported, true, [&](const CaptureSequence& sequence) {
        const bool mine = sequence.thread == thread && sequence.mode != CaptureMode::relaxed;
        const bool everybodys = sequence.mode == CaptureMode::global && mode == CaptureMode::global;
        return mine || everybodys;
    });
}

Refusal Captures::info(const CaptureTarget& target, CaptureInfo& info) {
    const std::lock_guard lock(mutex_);
    info = {};
    if (target.stream == nullptr) return blocked_legacy(target.context, false);
    const auto& sequence = target.stream->sequence_;
    if (sequence == nullptr) return Refusal::none;
    info.status = sequence->valid ? CaptureInfo::Status::active : CaptureInfo::Status::invalidated;
    info.id = sequence->id;
    info.graph = sequence->graph.get();
    info.is_clients = sequence->is_clients;
    info.ends = target.stream->ends_;
    return Refusal::none;
}

bool Captures::fills(const WorkGraph& graph) const noexcept {
    return std::ranges::any_of(sequences_, [&](const auto& each) { return each->graph.get() == &graph; });
}

}  // namespace emulated::streams
