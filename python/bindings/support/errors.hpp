// Translates C++ exceptions into the classes of bascule/_errors.py.
#pragma once

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Raises a missing kernel as AttributeError, which hasattr() and notebooks rely on.
[[noreturn]] void raise_missing_attribute(const CompileError& error);

/// Raises bascule's ArgumentBufferError, a BufferError, which DLPack requires for data that cannot be exchanged.
[[noreturn]] void raise_buffer_error(const std::string& message);

/// Issues NVRTC's warnings about this image through Python's `warnings`, at the user's lines. Once per process, whether
/// or not the image was cached. Call it after the image is stored, because a filter may turn a warning into an
/// exception. Needs the GIL.
void issue_compile_warnings(const Image& image, const Source& source);

/// Issues a warning of a class of bascule._errors at the running line of user code. Throws if a filter turns it into an
/// exception. Needs the GIL.
void warn(const char* class_name, const std::string& message);

/// For slots that pybind11 does not wrap: converts the exception being handled to a Python error.
void set_python_error() noexcept;

}  // namespace bascule::python
