// size_t and ptrdiff_t are built in; offsetof is libcu++'s.
#pragma once

#if __has_include(<cuda/std/cstddef>)
#include <cuda/std/cstddef>
#endif
