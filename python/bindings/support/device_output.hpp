// Output of device printf in notebooks, whose cells show only what is written to Python's sys.stdout.
#pragma once

namespace bascule::python {

/// Redirects output of kernels on the emulated device to sys.stdout if that belongs to a notebook. Otherwise, and on a
/// GPU, it still goes to the process's standard output. The driver must be loaded. Needs the GIL.
void redirect_device_output();

/// Writes the output of kernels so far. Call it in the main thread, with the GIL. The interpreter calls it between
/// bytecode instructions; a main thread that waits for a kernel calls it itself.
void write_device_output() noexcept;

}  // namespace bascule::python
