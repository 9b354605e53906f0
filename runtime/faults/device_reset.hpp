// The emulated device after a fault, made usable again.
#pragma once

namespace bascule {

/// Every emulated device that was used goes on as if nothing had failed. What is pending is dropped; arrays in device
/// memory and captured graphs are lost, and using one is an error that says so. Kernels, streams, events, pinned and
/// managed memory go on, and variables keep their values. Thread-safe; calls of other threads that are waiting fail.
/// Throws: LibraryError on a GPU, which only a restart of the process resets; CudaError inside a kernel that this thread
/// runs, where only a signal handler can be.
void reset_emulated_devices();

/// Whether a fault has cost a device that was used its context. Calls of it return the fault's error.
bool is_context_lost() noexcept;

}  // namespace bascule
