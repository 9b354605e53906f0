// Errors that an operation leaves without costing its context.
#pragma once

#include <cuda.h>

#include "driver/process.hpp"

namespace emulated::driver {

/// On the stack of a call that issues an operation and returns its error, if it runs inside the call: under `eager`.
class OwnOperation {
  public:
    OwnOperation() noexcept : outer_(own_) {
        if (Process::get().scheduler().policy() == streams::Policy::eager) own_ = this;
    }
    ~OwnOperation() { own_ = outer_; }
    OwnOperation(const OwnOperation&) = delete;
    OwnOperation& operator=(const OwnOperation&) = delete;

    CUresult error() const noexcept { return error_; }

    /// An operation of `context` was not done, or not to its end, and the context goes on. The error is that of the
    /// calling thread's OwnOperation; without one, that of the context's next call that waits.
    static void fail(Context& context, CUresult error) noexcept {
        if (own_ != nullptr) {
            own_->error_ = error;
        } else {
            context.passing_error = error;
        }
    }

  private:
    inline static thread_local constinit OwnOperation* own_ = nullptr;  // the innermost

    CUresult error_ = CUDA_SUCCESS;
    OwnOperation* outer_;
};

}  // namespace emulated::driver
