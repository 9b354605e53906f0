// Checks how much of the calling thread's stack is left. Python counts calls, but a launch that is made while another
// reads its arguments uses more stack than Python assumes.
#pragma once

#include <cstdint>

namespace bascule::python {

namespace detail {

/// Below this address there is too little room. Initially the highest address, so that the stack is looked up first.
/// Uses the initial-exec model because each launch reads it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::uintptr_t lowest_address;

void look_at_stack(std::uintptr_t address);

}  // namespace detail

/// `local` is an object on the stack. Throws: RecursionError if Python code that is called now might overflow the stack.
[[gnu::always_inline]] inline void require_stack(const void* local) {
    const auto address = reinterpret_cast<std::uintptr_t>(local);
    if (address < detail::lowest_address) [[unlikely]]
        detail::look_at_stack(address);
}

}  // namespace bascule::python
