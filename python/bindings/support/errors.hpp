// Translates C++ exceptions into the classes of bascule/_errors.py.
#pragma once

#include <string>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/text/source.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Raises a missing kernel as a missing attribute, on which hasattr() and notebooks rely.
[[noreturn]] void raise_missing_attribute(const CompileError& error);

/// Raises bascule's ArgumentBufferError, a BufferError: what DLPack asks for where data cannot be exchanged.
[[noreturn]] void raise_buffer_error(const std::string& message);

/// Issues NVRTC's warnings about this image through Python's `warnings`, at the user's places: once per process,
/// wherever the image came from. Call it after the image is stored: a filter may turn a warning into an
/// exception. Needs the GIL.
void issue_compile_warnings(const Image& image, const Source& source);

/// Issues a warning of this class of bascule._errors at the line of the user's code that is running. Throws what a filter
/// makes of it. Needs the GIL.
void warn(const char* class_name, const std::string& message);

/// For slots that pybind11 does not wrap: turns the exception being handled into the Python error that is
/// set.
void set_python_error() noexcept;

}  // namespace bascule::python
