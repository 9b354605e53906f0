// Where device printf goes: standard output, or the client (bascule_emulated_set_print).
#pragma once

#include <cstddef>
#include <functional>

namespace emulated::driver {

/// Empty when the client has set none.
std::function<void(const char*, std::size_t)> device_output();

}  // namespace emulated::driver
