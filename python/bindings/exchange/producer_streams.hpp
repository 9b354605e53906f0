// Finds the stream of arrays whose producer names none.
#pragma once

#include <atomic>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// For an array on `home` whose interface cannot name a stream (versions 0 to 2): sets the stream on which its library
/// works, by its type's exchange table, by built-in rules for the library, or by what the user registered for the type.
/// If none is known, the array names no stream, and a warning is issued the first time that the type is seen.
/// `consumer` is the stream that will use the array, as far as it is known. Returns an object to keep alive with the
/// array, or null. Throws: exceptions of the library; the warning, if warnings are errors.
py::object find_stream(PyObject* object, Device home, StreamRef consumer, ArrayView& view);

/// True if find_stream must be called.
inline bool needs_stream(const ArrayView& view) noexcept { return !view.stream && view.version < 3; }

namespace detail {
inline std::atomic<bool> interface_syncs{true};
}

/// True if launches wait for the streams that other libraries' arrays name (BASCULE_CUDA_ARRAY_INTERFACE_SYNC). Thread-safe.
inline bool interface_sync() noexcept { return detail::interface_syncs.load(std::memory_order_relaxed); }

}  // namespace bascule::python
