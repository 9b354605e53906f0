// Between the driver's functions and captures: what each call asks before it does anything.
#pragma once

#include <memory>

#include "driver/call.hpp"
#include "streams/capture.hpp"

namespace emulated::driver {

/// What a CUgraph points to.
using GraphObject = streams::WorkGraph;
template <>
inline constexpr HandleKind kind_of<GraphObject> = HandleKind::graph;

/// A new one that clients know.
inline std::shared_ptr<GraphObject> make_graph() {
    auto made = std::make_shared<GraphObject>();
    made->is_client = true;
    return made;
}

/// What a CUgraphExec points to.
struct GraphExecObject : streams::ExecutableGraph {
    static constexpr HandleKind kind = HandleKind::graph_exec;
    using ExecutableGraph::ExecutableGraph;
    unsigned long long flags = 0;
};

/// What a CUuserObject points to. It is found for as long as it has references.
struct UserObjectHandle : streams::UserObject {
    static constexpr HandleKind kind = HandleKind::user_object;
    using UserObject::UserObject;
};

inline CUresult to_result(streams::Refusal refusal) noexcept { return static_cast<CUresult>(refusal); }

streams::CaptureTarget capture_target(const StreamTarget& target) noexcept;

/// What a stream does with an operation now. Costs one load while there is no capture.
class CaptureGate {
  public:
    explicit CaptureGate(const StreamTarget& target) : target_(target) {
        if (streams::Captures::any()) [[unlikely]]
            ask();
    }
    CUresult state = CUDA_SUCCESS;  ///< or why the stream cannot be used
    /// The operation is to be handed to `add`, and not executed.
    bool captures() const noexcept { return captures_; }
    CUresult add(streams::WorkNode node) const;
    Context& context() const noexcept { return *target_.context; }
    /// That the stream is captured into; null when it is not any more.
    std::shared_ptr<streams::WorkGraph> graph() const;

  private:
    void ask();

    const StreamTarget& target_;
    bool captures_ = false;
};

// What calls ask that are not put on a stream. Each costs one load while there is no capture.

/// CUDA_SUCCESS, or why the calling thread may not make a call that captures do not see ("potentially
/// unsafe"). The documentation names cuMemAlloc alone; tests/gpu/captures.py records which calls a GPU's driver refuses.
CUresult unsafe_now(const char* name);

/// CUDA_SUCCESS, or why a call may not be made with a stream that is being captured, or with an event that was last
/// recorded on one.
CUresult no_capture_now(const StreamTarget& target, const char* name);
CUresult no_capture_now(Event& event, const char* name);

/// CUDA_SUCCESS, or why the host may not ask a stream, a whole context or an event whether it is done.
CUresult question_now(const StreamTarget& target, const char* name);
CUresult question_now(const Context& context, const char* name);
CUresult question_now(Event& event, const char* name);

}  // namespace emulated::driver
