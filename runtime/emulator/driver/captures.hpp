// Stream capture as the driver's functions see it: the checks that each call makes before it does anything.
#pragma once

#include <memory>

#include "driver/call.hpp"
#include "streams/capture.hpp"

namespace emulated::driver {

/// The object of a CUgraph.
using GraphObject = streams::WorkGraph;

/// Makes a graph that has a handle.
inline std::shared_ptr<GraphObject> make_graph() {
    auto made = std::make_shared<GraphObject>();
    made->is_client = true;
    return made;
}

/// The object of a CUgraphExec.
struct GraphExecObject : streams::ExecutableGraph {
    using ExecutableGraph::ExecutableGraph;
    unsigned long long flags = 0;
};

/// The object of a CUuserObject. The handle is valid while the object has references.
struct UserObjectHandle : streams::UserObject {
    using UserObject::UserObject;
};

inline CUresult to_result(streams::Refusal refusal) noexcept { return static_cast<CUresult>(refusal); }

/// The mode of the calling thread (cuThreadExchangeStreamCaptureMode).
CUstreamCaptureMode& thread_capture_mode() noexcept;

streams::CaptureTarget capture_target(const StreamTarget& target) noexcept;

/// Decides whether a stream executes an operation or captures it, and throws if it refuses it. Costs one load while nothing
/// is captured.
class CaptureGate {
  public:
    explicit CaptureGate(const StreamTarget& target) : target_(target) {
        if (streams::Captures::any()) [[unlikely]]
            ask();
    }
    /// True if the operation must be passed to `add` instead of being executed.
    bool captures() const noexcept { return captures_; }
    void add(streams::WorkNode node) const;
    /// Adds the node that `make(node, arguments...)` makes.
    template <class Make, class... Arguments>
    void add(const Make& make, Arguments&&... arguments) const {
        streams::WorkNode node;
        make(node, std::forward<Arguments>(arguments)...);
        add(std::move(node));
    }
    Context& context() const noexcept { return *target_.context; }
    /// The graph that the stream is captured into. Throws if the capture has ended.
    std::shared_ptr<streams::WorkGraph> graph() const;

  private:
    void ask();

    const StreamTarget& target_;
    bool captures_ = false;
};

// Checks of calls that take no stream. Each costs one load while nothing is captured.

/// Refuses a "potentially unsafe" call, which no capture records, if a capture forbids it in the calling thread.
/// The documentation names only cuMemAlloc; tests/gpu/captures.py records which calls a GPU's driver refuses.
void unsafe_now(const char* name);

/// Refuses a call that may not take a stream that is being captured, a context of such a stream, or an event last recorded
/// on one.
void no_capture_now(const StreamTarget& target, const char* name);
void no_capture_now(const Context& context, const char* name);
void no_capture_now(Event& event, const char* name);

/// Refuses a call that asks whether a stream, a context or an event has completed, if what it asks about is being
/// captured. Otherwise the call is refused where `unsafe_now` refuses calls.
template <class Asked>
void question_now(Asked& asked, const char* name) {
    no_capture_now(asked, name);
    unsafe_now(name);
}

}  // namespace emulated::driver
