// Between the driver's functions and captures: what each call asks before it does anything.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "driver/call.hpp"
#include "streams/capture.hpp"

namespace emulated::driver {

/// What a CUgraph points to.
struct GraphObject : streams::CapturedGraph {
    static constexpr HandleKind kind = HandleKind::graph;
};

/// What a CUgraphExec points to.
struct GraphExecObject : streams::ExecutableGraph {
    static constexpr HandleKind kind = HandleKind::graph_exec;
    using ExecutableGraph::ExecutableGraph;
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
    CUresult add(streams::CapturedNode node) const;
    /// What an executable graph cannot be updated to have otherwise: `operands` and `attributes`.
    template <class Work>
    CUresult add(streams::CapturedNode::Kind kind, Work work,
                 const std::array<std::uint64_t, 8>& operands = {}, std::uint64_t attributes = 0) const {
        streams::CapturedNode node;
        node.kind = kind;
        node.operands = operands;
        node.attributes = attributes;
        node.work = std::make_shared<const std::function<void()>>(std::move(work));
        return add(std::move(node));
    }

  private:
    void ask();

    const StreamTarget& target_;
    bool captures_ = false;
};

namespace detail {
CUresult refuse_unsafe(const char* name);
CUresult refuse_question(const StreamTarget& target, const char* name);
CUresult refuse_question(const Context& context, const char* name);
CUresult refuse_allocation(const char* name);
}  // namespace detail

/// CUDA_SUCCESS, or why the calling thread may not make a call that captures do not see ("potentially
/// unsafe"): the documentation names cuMemAlloc, and means those that may wait for the device or change what
/// is on it.
inline CUresult unsafe_now(const char* name) {
    return streams::Captures::any() ? detail::refuse_unsafe(name) : CUDA_SUCCESS;
}

/// CUDA_SUCCESS, or why the host may not ask a stream, or a whole context, whether it is done.
template <class Target>
CUresult question_now(const Target& target, const char* name) {
    return streams::Captures::any() ? detail::refuse_question(target, name) : CUDA_SUCCESS;
}

/// CUDA_SUCCESS, or why the host may not ask this event.
CUresult question_now(Event& event, const char* name);

}  // namespace emulated::driver
