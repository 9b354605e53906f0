#include "support/stack_room.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <pthread.h>

#include "support/pybind.hpp"

namespace bascule::python {
namespace {

constexpr std::uintptr_t unknown = std::numeric_limits<std::uintptr_t>::max();
constexpr std::size_t most_room = std::size_t{512} << 10;  // for several of the largest launches

constinit thread_local std::uintptr_t stack_begin = 0;

/// Sets both variables. If the system does not report the stack, no address is too low.
void find_stack() noexcept {
    stack_begin = detail::lowest_address = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t size = 0;
    if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
        stack_begin = reinterpret_cast<std::uintptr_t>(begin);
        detail::lowest_address = stack_begin + std::min(most_room, size / 4);
    }
    pthread_attr_destroy(&attributes);
}

}  // namespace

constinit thread_local std::uintptr_t detail::lowest_address = unknown;

void detail::look_at_stack(std::uintptr_t address) {
    if (lowest_address == unknown) find_stack();
    // An address below the thread's own stack is in the stack of a coroutine.
    if (address >= lowest_address || address < stack_begin) return;
    PyErr_SetString(PyExc_RecursionError,
                    "maximum recursion depth exceeded: reading an argument reads it again");
    throw py::error_already_set();
}

}  // namespace bascule::python
