#include <unistd.h>
#include <utility>

#include <bascule/runtime/trace/traced_call.hpp>

namespace bascule {

void TracedCall::begin(CallKind kind, std::string name) {
    watched_ = true;
    if (watches(Watch::ranges)) {
        range_ = trace::range_functions.load(std::memory_order_acquire);
        if (range_ != nullptr) range_->push(("bascule: " + name).c_str());
    }
    recording_ = trace::current_recording();
    if (recording_ == nullptr) return;
    record_ = std::make_unique<TraceRecord>();
    record_->kind = kind;
    record_->name = std::move(name);
    record_->thread = static_cast<std::uint64_t>(gettid());
    record_->called.begin = trace_now();
}

void TracedCall::end() noexcept {
    if (record_ != nullptr) {
        record_->called.end = trace_now();
        if (issuing_) trace::cancel_operation(*recording_, *record_);
        try {
            trace::add(*recording_, std::move(*record_));
        } catch (...) {  // out of memory: this call is missing from the trace
        }
    }
    if (range_ != nullptr) range_->pop();
}

}  // namespace bascule
