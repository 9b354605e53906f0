// Device printf in a notebook, whose cells show what Python's sys.stdout gets.
#pragma once

namespace bascule::python {

/// From now on what kernels print on the emulated device goes to sys.stdout, if that is a notebook's. Otherwise, and on
/// a GPU, it goes to the process's standard output as before. The driver is loaded; the GIL is held.
void redirect_device_output();

/// Writes what kernels have printed so far; in the main thread, with the GIL. The interpreter does it between two lines
/// of Python; a main thread that waits for a kernel does it itself.
void write_device_output() noexcept;

}  // namespace bascule::python
