// One call as a trace and a profiler see it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <bascule/runtime/streams/watches.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

/// A profiler's ranges, which nest on each thread. They must not throw; they may take Python's lock, so no lock of
/// ours may be held.
struct RangeFunctions {
    void (*push)(const char* name) noexcept;
    void (*pop)() noexcept;
};
namespace trace {
/// That ranges are emitted with, while Watch::ranges is on.
inline std::atomic<const RangeFunctions*> range_functions{nullptr};
}  // namespace trace

/// A call from here to the end of the scope. Costs a test while nothing is watched.
class TracedCall {
  public:
    /// `describe` returns the name of the call; it is called only when the call is recorded or shown.
    template <class Describe>
    TracedCall(CallKind kind, const Describe& describe) {
        if (watches(Watch::record) || watches(Watch::ranges)) [[unlikely]]
            begin(kind, describe());
    }
    /// A copy or fill of so many bytes.
    TracedCall(CallKind kind, std::uint64_t bytes) : TracedCall(kind, [&] { return to_string(kind); }) {
        if (record_ != nullptr) record_->bytes = bytes;
    }
    ~TracedCall() {
        if (watched_) [[unlikely]]
            end();
    }
    TracedCall(TracedCall&&) = delete;

    /// Null unless a trace is recorded.
    TraceRecord* record() noexcept { return record_.get(); }
    /// Around the driver call that gives the device work, as trace::begin_operation and trace::end_operation.
    void begin_operation(StreamRef stream) {
        if (record_ == nullptr) return;
        issuing_ = true;
        trace::begin_operation(*recording_, *record_, stream);
    }
    void end_operation() {
        if (record_ == nullptr) return;
        issuing_ = false;
        trace::end_operation(*recording_, *record_);
    }

  private:
    void begin(CallKind kind, std::string name);
    void end() noexcept;

    bool watched_ = false;
    bool issuing_ =
        false;  // between begin_operation and end_operation: the driver has refused where this goes then
    std::shared_ptr<trace::Recording> recording_;
    std::unique_ptr<TraceRecord> record_;    // of that trace
    const RangeFunctions* range_ = nullptr;  // of the range to close
};

}  // namespace bascule
