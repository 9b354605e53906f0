// A call that traces and profilers see.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <bascule/runtime/streams/watches.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

namespace trace {
/// The functions in use while Watch::ranges is on.
inline std::atomic<const RangeFunctions*> range_functions{nullptr};
}  // namespace trace

/// Traces a call from construction to the end of the scope. Costs one test while nothing is recorded.
class TracedCall {
  public:
    /// `describe` returns the call's name. It is called only if the call is recorded or shown.
    template <class Describe>
    TracedCall(CallKind kind, const Describe& describe) {
        if (watches(Watch::record) || watches(Watch::ranges)) [[unlikely]]
            begin(kind, describe());
    }
    /// A copy or fill of `bytes` bytes.
    TracedCall(CallKind kind, std::uint64_t bytes) : TracedCall(kind, [&] { return to_string(kind); }) {
        if (record_ != nullptr) record_->bytes = bytes;
    }
    ~TracedCall() {
        if (watched_) [[unlikely]]
            end();
    }
    TracedCall(TracedCall&&) = delete;

    /// Null unless a trace is being recorded.
    TraceRecord* record() noexcept { return record_.get(); }
    /// Called before and after the driver call that enqueues the work; see trace::begin_operation and trace::end_operation.
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
        false;  // between begin_operation and end_operation; if still set at the end, the driver call failed
    std::shared_ptr<trace::Recording> recording_;
    std::unique_ptr<TraceRecord> record_;    // of `recording_`
    const RangeFunctions* range_ = nullptr;  // non-null while a range is open
};

}  // namespace bascule
