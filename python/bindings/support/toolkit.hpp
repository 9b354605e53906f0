// Passes the places of NVRTC and the CUDA headers from Python to the compiler.
#pragma once

namespace bascule::python {

/// Asks bascule._toolkit once, before the first compile, and again after bascule.config changed. Needs the
/// GIL.
void prepare_toolkit();

/// The next compile asks again.
void forget_toolkit() noexcept;

}  // namespace bascule::python
