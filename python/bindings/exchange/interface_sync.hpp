// The setting `bascule.config.cuda_array_interface_sync`: whether foreign arrays' streams are waited for.
#pragma once

#include <atomic>

#include <pybind11/pybind11.h>

namespace bascule::python {

namespace detail {
inline std::atomic<bool> interface_syncs{true};
}

/// Thread-safe.
inline bool interface_sync() noexcept { return detail::interface_syncs.load(std::memory_order_relaxed); }

}  // namespace bascule::python
