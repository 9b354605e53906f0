// Which device an array's memory is on, asked without the GIL.
#pragma once

#include <bascule/runtime/driver/home_device.hpp>

#include "support/gil.hpp"

namespace bascule::python {

/// As resolve_at_home. The GIL is given back only where the driver is asked.
inline void find_home(ArrayView& array, Home& home, int told = not_told) {
    if (array.empty() || is_known_at_home(array.pointer, home, told)) return;
    without_gil([&] { resolve_at_home(array, home, told); });
}

}  // namespace bascule::python
