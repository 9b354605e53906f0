// Errors of an operation that do not fail its context.
#pragma once

#include <cuda.h>

#include "driver/process.hpp"

namespace emulated::driver {

/// Placed on the stack of a call that issues an operation. Receives the operation's error if it runs inside the call
/// (`eager`).
class OwnOperation {
  public:
    OwnOperation() noexcept : outer_(own_) {
        if (Process::get().scheduler().policy() == streams::Policy::eager) own_ = this;
    }
    ~OwnOperation() { own_ = outer_; }
    OwnOperation(OwnOperation&&) = delete;

    CUresult error() const noexcept { return error_; }

    /// Reports that an operation of `context` was not executed, or not completed, and that the context is still usable. The
    /// error goes to the calling thread's OwnOperation, or to the context's next call that waits if there is none.
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
