// C++ exceptions become the classes of bascule/_errors.py.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule::python {

/// Lets every bound function raise ours.
void register_errors();

/// Raises a kernel that is not there as an attribute that is not there: hasattr() and notebooks rely on that.
[[noreturn]] void raise_missing_attribute(const CompileError& error);

/// Raises bascule's ArgumentBufferError, a BufferError: what DLPack asks for where data cannot be exchanged.
[[noreturn]] void raise_buffer_error(const std::string& message);

/// Gives Python's `warnings` what NVRTC warned of when this image was made, at the user's places: once a
/// process, wherever the image came from. Call it when the image is stored: a filter may make an exception of
/// it. Needs the GIL.
void issue_compile_warnings(const Image& image, const Source& source);

/// For slots that pybind11 does not wrap: turns the exception being handled into the Python error that is
/// set.
void set_python_error() noexcept;

}  // namespace bascule::python
