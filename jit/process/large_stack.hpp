// Compilers recurse as deep as a text nests: an expression of 40,000 terms needs more than the stack of a usual thread.
#pragma once

#include <functional>

namespace bascule {

/// Calls `work`, which does not throw, with a stack of 256 MiB, of which what is not used takes no memory; where the system gives
/// none of that size, with less. The calling thread waits.
void run_on_large_stack(const std::function<void()>& work);

}  // namespace bascule
