// Compilers recurse with the nesting of a text: an expression of 40,000 terms needs more than a thread's usual stack.
#pragma once

#include <functional>

namespace bascule {

/// Calls `work`, which must not throw, on a thread with a stack of 256 MiB, whose unused part takes no memory. If the
/// system has no stack of that size, it is smaller. The calling thread waits.
void run_on_large_stack(const std::function<void()>& work);

}  // namespace bascule
