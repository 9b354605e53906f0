// Passes the paths of NVRTC and the CUDA headers from Python to the compiler.
#pragma once

namespace bascule::python {

/// Asks bascule._toolkit before the first compilation, and again after bascule.config has changed. Needs the GIL.
void prepare_toolkit();

/// Makes the next compilation ask again.
void forget_toolkit() noexcept;

}  // namespace bascule::python
