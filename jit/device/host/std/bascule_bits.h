// Floating-point values from their bits: a part of <math.h> and <limits>. NVRTC 12.0 has no constant expression for them.
#pragma once

#if __has_builtin(__builtin_bit_cast)
#define BASCULE_CONSTANT constexpr
#define BASCULE_FLOAT_OF(bits) __builtin_bit_cast(float, bits)
#define BASCULE_DOUBLE_OF(bits) __builtin_bit_cast(double, bits)
#else
#define BASCULE_CONSTANT
#define BASCULE_FLOAT_OF(bits) __int_as_float(bits)
#define BASCULE_DOUBLE_OF(bits) __longlong_as_double(bits)
#endif
