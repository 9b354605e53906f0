// Resets the emulated device after a fault.
#pragma once

namespace bascule {

/// Makes every emulated device in use usable again. Pending work is dropped. Arrays in device memory and captured
/// graphs are lost, and using them raises an error that says so. Kernels, streams, events, and pinned and managed
/// memory stay valid, and variables keep their values. Thread-safe; waiting calls of other threads fail. Throws:
/// LibraryError on a GPU, because only restarting the process resets it; CudaError inside a kernel that this thread
/// runs, which can only happen in a signal handler.
void reset_emulated_devices();

/// Whether a fault has lost the context of a device in use. Calls on that device then return the fault's error.
bool is_context_lost() noexcept;

}  // namespace bascule
