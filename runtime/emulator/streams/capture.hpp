// Capture sequences: which streams are captured instead of executed, and what is refused meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "streams/work_graph.hpp"

namespace emulated::streams {

/// Numbered as the driver's CUstreamCaptureMode.
enum class CaptureMode : std::uint8_t { global, this_thread, relaxed };

/// Why something cannot be done because of a capture. Numbered as the driver's CUresult.
enum class Refusal : std::uint16_t {
    none = 0,
    illegal_state = 401,   ///< the stream is capturing, or it is not
    unsupported = 900,     ///< not while the stream is capturing, or not while any stream is captured
    invalidated = 901,     ///< something before was refused
    merge = 902,           ///< it would join two captures
    unmatched = 903,       ///< another stream began the capture
    unjoined = 904,        ///< a stream that was pulled in was not waited for
    isolation = 905,       ///< what is captured would depend on what is not
    implicit = 906,        ///< the legacy default stream would depend on what is captured
    captured_event = 907,  ///< the event marks what was captured
    wrong_thread = 908,    ///< another thread began the capture
};

struct CaptureSequence;
class Captures;

/// A stream's part in a capture.
class CapturingStream {
  public:
    CapturingStream() = default;
    ~CapturingStream();  // cancels what it began
    CapturingStream(const CapturingStream&) = delete;
    CapturingStream& operator=(const CapturingStream&) = delete;

  private:
    friend class Captures;
    std::shared_ptr<CaptureSequence> sequence_;  // null: not capturing
    std::vector<WorkNode*> ends_;                // what its next operation comes after
    const void* context_ = nullptr;
    bool blocking_ = true;
};

/// What an event marks that was last recorded on a capturing stream.
class CapturedMark {
  public:
    bool exists() const noexcept { return exists_.load(std::memory_order_relaxed); }

  private:
    friend class Captures;
    std::atomic<bool> exists_{false};
    std::shared_ptr<CaptureSequence> sequence_;
    std::vector<WorkNode*> ends_;
};

/// A stream as a capture sees it.
struct CaptureTarget {
    CapturingStream* stream = nullptr;  ///< null: the legacy default stream of the context
    const void* context = nullptr;
    bool blocking = true;
};

/// What a client may know of a stream's capture.
struct CaptureInfo {
    enum class Status : std::uint8_t { none, active, invalidated };  ///< as CUstreamCaptureStatus
    Status status = Status::none;
    std::uint64_t id = 0;
    const WorkGraph* graph = nullptr;
    bool is_clients = false;  ///< the graph was there before the capture
    std::vector<WorkNode*> ends;
};

/// All captures of the process. Thread-safe. What is refused invalidates the captures that it concerns,
/// unless a function says otherwise.
class Captures {
  public:
    static Captures& get();

    /// False: no stream is capturing, and nothing here need be asked but of events.
    static bool any() noexcept { return ongoing_.load(std::memory_order_relaxed) != 0; }

    /// `graph` grows until the end. It is new; or its client's, and what comes first is after `after` of it. Refusing
    /// changes nothing.
    Refusal begin(const CaptureTarget& target, CaptureMode mode, std::uint64_t thread,
                  std::shared_ptr<WorkGraph> graph,
                  std::optional<std::vector<WorkNode*>> after = std::nullopt);
    /// Whatever it returns, but for a wrong thread, an unmatched stream and an illegal state, the capture is
    /// over. `graph` is null unless all went well.
    Refusal end(const CaptureTarget& target, std::uint64_t thread, std::shared_ptr<WorkGraph>& graph);
    /// The stream goes.
    void abandon(CapturingStream& stream);

    /// Asked before an operation is put on a stream: whether it is captured, executed or refused.
    struct Use {
        Refusal refusal = Refusal::none;
        bool captured = false;
    };
    Use use(const CaptureTarget& target);
    /// The next operation of a capturing stream.
    Refusal add(const CaptureTarget& target, std::shared_ptr<WorkNode> node);
    /// What comes next on a capturing stream is after `nodes` of the graph, too, or `instead` of what it was after.
    Refusal come_after(const CaptureTarget& target, const std::vector<WorkNode*>& nodes, bool instead);
    /// On a capturing stream.
    Refusal record(const CaptureTarget& target, CapturedMark& mark);
    /// The event was recorded where nothing is captured.
    void forget(CapturedMark& mark);
    /// `handled`: there is nothing left to do outside the capture.
    struct Wait {
        Refusal refusal = Refusal::none;
        bool handled = false;
    };
    Wait wait(const CaptureTarget& target, CapturedMark& mark);

    /// Asking a stream, or waiting for it on the host.
    Refusal ask(const CaptureTarget& target);
    Refusal ask(CapturedMark& mark);
    Refusal ask_context(const void* context);
    /// A call that captures do not see, and that they may need: `mode` is the calling thread's.
    Refusal unsafe(std::uint64_t thread, CaptureMode mode);

    /// Refuses without invalidating.
    Refusal info(const CaptureTarget& target, CaptureInfo& info);

    /// Nothing is captured while `work` runs.
    template <class Work>
    auto paused(const Work& work) {
        const std::lock_guard lock(mutex_);
        return work();
    }
    /// Whether a capture that goes on fills this graph. Within paused().
    bool fills(const WorkGraph& graph) const noexcept;

  private:
    void join(const CaptureTarget& target, const std::shared_ptr<CaptureSequence>& sequence);
    void finish(CaptureSequence& sequence);
    Refusal blocked_legacy(const void* context, bool invalidate);
    template <class Concerns>
    Refusal refuse_where(Refusal refusal, bool invalidate, const Concerns& concerns);

    inline static std::atomic<int> ongoing_{0};
    mutable std::mutex mutex_;  // of what follows, and of every stream's and event's part
    std::vector<std::shared_ptr<CaptureSequence>> sequences_;
    std::uint64_t next_id_ = 1;
};

}  // namespace emulated::streams
