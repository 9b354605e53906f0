// Values for the vectors: random bits, and values at which errors are likely.
#include <cmath>

#include "vectors.hpp"

namespace vectors {
namespace {

using reference::bits_of;
using reference::format_of;

Bits some_float(Type type, Random& random) {
    const auto& format = format_of(type);
    const unsigned stored = static_cast<unsigned>(format.precision) - 1;
    const Bits mantissa = random() & ((Bits{1} << stored) - 1);
    const Bits bias = static_cast<Bits>(format.greatest_exponent - 1);
    const Bits sign = random() % 2 ? reference::sign_bit(type) : 0;
    const Bits infinity = (2 * bias + 1) << stored, one = bias << stored;
    // A biased exponent: near that of 1, or in a wide range around it that includes the limits of narrower formats.
    const auto exponent = [&] {
        const Bits far = random() % 2 ? 3 : bias > 40 ? 40 : bias - 1;
        return bias - far + random() % (2 * far + 1);
    };
    switch (random() % 8) {
        case 0:  // any bits at all
            return random() & reference::mask_of(type);
        case 1:
        case 2: {
            const Bits special[] = {0,
                                    0,
                                    infinity,
                                    infinity | 1,
                                    format.canonical_nan,
                                    format.canonical_nan - 8,  // as f16: NaN outside of a tensor
                                    1,
                                    (Bits{1} << stored) - 1,
                                    Bits{1} << stored,
                                    (Bits{1} << stored) + 1,
                                    infinity - 1,
                                    one,
                                    one,
                                    one + 1,
                                    one - 1,
                                    one - (Bits{1} << stored),
                                    one + (Bits{1} << stored),
                                    one + (Bits{1} << (stored - 1))};
            return sign | special[random() % std::size(special)];
        }
        case 3:  // quarters: ties of roundings to integers
            return bits_of(type, static_cast<double>(static_cast<int>(random() % 128) - 64) / 4);
        case 4: {  // around the ends of the integer types
            const int power = static_cast<int>(random() % 66);
            if (power >= format.greatest_exponent) return sign | (infinity - 1 - random() % 4);
            return (sign | bits_of(type, std::ldexp(1.0, power))) + random() % 5 - 2;
        }
        case 5:
            return sign | mantissa;  // a subnormal
        // Few significant bits, or one unit in the last place above or below such a value: products, sums and
        // conversions are often ties or next to one.
        case 6: {
            const unsigned kept = static_cast<unsigned>(random() % (stored + 1));
            const Bits few = mantissa >> (stored - kept) << (stored - kept);
            return (sign | exponent() << stored | few) + random() % 3 - 1;
        }
        default:
            return sign | exponent() << stored | mantissa;
    }
}

}  // namespace

Bits some_integer(unsigned bits, Random& random) {
    const Bits mask = bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1, top = Bits{1} << (bits - 1);
    const Bits any = random();
    switch (random() % 8) {
        case 0: {
            const Bits special[] = {0,  1,  2,  ~Bits{0}, ~Bits{1}, top, top - 1, top + 1,
                                    31, 32, 33, 63,       64,       65,  255,     256};
            return special[any % std::size(special)] & mask;
        }
        case 1:
            return any % 72 & mask;
        case 2:
            return ~(any % 72) & mask;
        case 3:
            return ((Bits{1} << any % bits) + (any >> 32) % 3 - 1) & mask;
        case 4: {  // few bits, or one more at the end: ties of conversions to floats, or next to one
            const unsigned kept = 1 + static_cast<unsigned>(random() % bits);
            return (((any & mask) >> (bits - kept) << (bits - kept)) + random() % 3 - 1) & mask;
        }
        case 5:
            return (any >> (random() % 64)) & mask;
        default:
            return any & mask;
    }
}

Bits some_value(Type type, Random& random) {
    if (type == Type::pred) return random() % 2;
    if (reference::is_packed(type)) {
        const Type half = reference::element_of(type);
        if (!emulated::ptx::is_float(half)) return some_integer(16, random) | some_integer(16, random) << 16;
        return some_float(half, random) | some_float(half, random) << 16;
    }
    if (emulated::ptx::is_float(type)) return some_float(type, random);
    return some_integer(reference::bits_in(type), random);
}

}  // namespace vectors
