// Producers that name no stream: what is known of the order of their arrays.
#pragma once

#include <atomic>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// For an array whose interface could not name a stream (versions 0 to 2) and lies on `home`: the stream that
/// its library works on, by its type's exchange table, by what is known of the library, or by what was
/// registered for the type. Where none is known, the array names none, and there is a warning the first time
/// that the type is seen. `consumer` is where the array will be used, as far as that is known. Returns what
/// must be kept alive with the array, or null. Throws: what the library raised; the warning, where warnings
/// are errors.
pybind11::object find_stream(PyObject* object, Device home, StreamRef consumer, ArrayView& view);

/// Whether find_stream is to be asked.
inline bool needs_stream(const ArrayView& view) noexcept { return !view.has_stream && view.version < 3; }

namespace detail {
inline std::atomic<bool> interface_syncs{true};
}

/// Thread-safe.
inline bool interface_sync() noexcept { return detail::interface_syncs.load(std::memory_order_relaxed); }

}  // namespace bascule::python
