// Work that the program no longer wants, as after Ctrl-C; and errors that an operation leaves without costing its
// context.
#pragma once

#include <chrono>

#include <cuda.h>

namespace emulated::driver {

struct Context;

/// Whether the program no longer wants what the calling thread runs or waits for. Asks the client
/// (bascule_emulated_set_interrupt), at most every 100 ms until it says so. The caller holds no lock.
bool interrupted() noexcept;

/// The process is about to end: what is pending has `left` to finish, and is dropped then. Zero: it stays pending.
void end_soon(std::chrono::milliseconds left);
/// From then on whatever waits only to free something does nothing.
bool ending() noexcept;

/// What is pending in any context is never done, what runs ends soon, and those contexts have an error from now on.
void drop_pending();

/// `drop_pending` if the program wants that: for threads that wait for others.
void drop_pending_if_interrupted();

/// On the stack of a call that issues an operation and returns its error, if it runs inside the call: under `eager`.
class OwnOperation {
  public:
    OwnOperation() noexcept;
    ~OwnOperation();
    OwnOperation(const OwnOperation&) = delete;
    OwnOperation& operator=(const OwnOperation&) = delete;

    CUresult error() const noexcept { return error_; }

    /// An operation of `context` was not done, or not to its end, and the context goes on. The error is that of the
    /// calling thread's OwnOperation; without one, that of the context's next call that waits.
    static void fail(Context& context, CUresult error) noexcept;

  private:
    CUresult error_ = CUDA_SUCCESS;
    OwnOperation* outer_;
};

}  // namespace emulated::driver
