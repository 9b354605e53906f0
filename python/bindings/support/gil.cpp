#include "support/gil.hpp"

#include <bascule/runtime/driver/program_lock.hpp>

namespace bascule::python {
namespace {

constexpr ProgramLock gil = {
    []() noexcept -> void* { return holds_gil() ? PyEval_SaveThread() : nullptr; },
    [](void* state) noexcept { restore_gil(static_cast<PyThreadState*>(state)); },
};

}  // namespace

void enter_driver_without_gil() noexcept { program_lock.store(&gil, std::memory_order_release); }

}  // namespace bascule::python
