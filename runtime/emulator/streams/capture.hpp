// Capture sequences: which streams are captured instead of executed, and which calls are refused meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "streams/work_graph.hpp"

namespace emulated::streams {

/// The values are those of CUstreamCaptureMode.
enum class CaptureMode : std::uint8_t { global, this_thread, relaxed };

/// Why a capture prevents a call. The values are those of CUresult.
enum class Refusal : std::uint16_t {
    none = 0,
    illegal_state = 401,   ///< the stream is capturing, or is not capturing
    unsupported = 900,     ///< not allowed while this stream, or any stream, is captured
    invalidated = 901,     ///< an earlier call was refused
    merge = 902,           ///< would merge two captures
    unmatched = 903,       ///< another stream began the capture
    unjoined = 904,        ///< a stream that joined the capture was not joined back
    isolation = 905,       ///< captured work would depend on uncaptured work
    implicit = 906,        ///< the legacy default stream would depend on captured work
    captured_event = 907,  ///< the event was recorded in a capture
    wrong_thread = 908,    ///< another thread began the capture
};

struct CaptureSequence;
class Captures;

/// The capture state of a stream.
class CapturingStream {
  public:
    CapturingStream() = default;
    ~CapturingStream();  // ends the capture that it began
    CapturingStream(CapturingStream&&) = delete;

  private:
    friend class Captures;
    std::shared_ptr<CaptureSequence> sequence_;  // null if not capturing
    std::vector<WorkNode*> ends_;                // the nodes that precede its next operation
    const void* context_ = nullptr;
    bool blocking_ = true;
};

/// The captured state of an event that was last recorded on a capturing stream.
class CapturedMark {
  public:
    bool exists() const noexcept { return exists_.load(std::memory_order_relaxed); }

  private:
    friend class Captures;
    std::atomic<bool> exists_{false};
    std::shared_ptr<CaptureSequence> sequence_;
    std::vector<WorkNode*> ends_;
};

/// A stream, as passed to Captures.
struct CaptureTarget {
    CapturingStream* stream = nullptr;  ///< null: the context's legacy default stream
    const void* context = nullptr;
    bool blocking = true;
};

/// The result of a query about a stream's capture.
struct CaptureInfo {
    enum class Status : std::uint8_t { none, active, invalidated };  ///< as CUstreamCaptureStatus
    Status status = Status::none;
    std::uint64_t id = 0;
    const WorkGraph* graph = nullptr;
    bool is_clients = false;  ///< the graph existed before the capture
    std::vector<WorkNode*> ends;
};

/// All captures of the process. Thread-safe. A refused call invalidates the captures that it concerns, unless the function
/// says otherwise.
class Captures {
  public:
    static Captures& get();

    /// False if no stream is capturing; then only events need a check.
    static bool any() noexcept { return ongoing_.load(std::memory_order_relaxed) != 0; }

    /// Starts a capture into `graph`. It is either new, or the client's; then the first captured nodes depend on `after`.
    /// Nothing changes if it is refused.
    Refusal begin(const CaptureTarget& target, CaptureMode mode, std::uint64_t thread,
                  std::shared_ptr<WorkGraph> graph,
                  std::optional<std::vector<WorkNode*>> after = std::nullopt);
    /// Ends the capture, except after wrong_thread, unmatched and illegal_state. `graph` is null unless it succeeds.
    Refusal end(const CaptureTarget& target, std::uint64_t thread, std::shared_ptr<WorkGraph>& graph);
    /// Called when the stream is destroyed.
    void abandon(CapturingStream& stream);

    /// Called before an operation is put on a stream: tells whether it is captured, executed or refused.
    struct Use {
        Refusal refusal = Refusal::none;
        bool captured = false;
    };
    Use use(const CaptureTarget& target);
    /// Adds the next operation of a capturing stream.
    Refusal add(const CaptureTarget& target, std::shared_ptr<WorkNode> node);
    /// Makes the next operation of a capturing stream depend on `nodes` of the graph, in addition to or `instead` of its
    /// dependencies so far.
    Refusal come_after(const CaptureTarget& target, const std::vector<WorkNode*>& nodes, bool instead);
    /// Records an event on a capturing stream.
    Refusal record(const CaptureTarget& target, CapturedMark& mark);
    /// Called when the event is recorded on a stream that is not capturing.
    void forget(CapturedMark& mark);
    /// `handled` is true if there is nothing to do outside the capture.
    struct Wait {
        Refusal refusal = Refusal::none;
        bool handled = false;
    };
    Wait wait(const CaptureTarget& target, CapturedMark& mark);

    /// Call these before the host queries or waits for a stream, an event or a context. If it is being captured, they
    /// invalidate the capture and return why the call is refused.
    Refusal ask(const CaptureTarget& target);
    Refusal ask(CapturedMark& mark);
    Refusal ask_context(const void* context);
    /// Checks a "potentially unsafe" call, which no capture records. `mode` is the calling thread's.
    Refusal unsafe(std::uint64_t thread, CaptureMode mode);

    /// Describes the capture of a stream. Never invalidates it.
    Refusal info(const CaptureTarget& target, CaptureInfo& info);

    /// Runs `work` while nothing is captured.
    template <class Work>
    auto paused(const Work& work) {
        const std::lock_guard lock(mutex_);
        return work();
    }
    /// True if an active capture adds to this graph. Must be called within paused().
    bool fills(const WorkGraph& graph) const noexcept;

  private:
    void join(const CaptureTarget& target, const std::shared_ptr<CaptureSequence>& sequence);
    void finish(CaptureSequence& sequence);
    Refusal blocked_legacy(const void* context, bool invalidate);
    template <class Concerns>
    Refusal refuse_where(Refusal refusal, bool invalidate, const Concerns& concerns);

    inline static std::atomic<int> ongoing_{0};
    mutable std::mutex mutex_;  // guards the members below, and the capture state of every stream and event
    std::vector<std::shared_ptr<CaptureSequence>> sequences_;
    std::uint64_t next_id_ = 1;
};

}  // namespace emulated::streams
