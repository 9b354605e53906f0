#include "reference/tensor.hpp"

#include <cctype>
#include <cmath>
#include <stdexcept>
#include <string>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

std::vector<std::string_view> parts_of(std::string_view spelling) {
    std::vector<std::string_view> made;
    while (!spelling.empty()) {
        const std::size_t dot = spelling.find('.');
        made.push_back(spelling.substr(0, dot));
        spelling = dot == spelling.npos ? "" : spelling.substr(dot + 1);
    }
    return made;
}

unsigned number_after(std::string_view text, char letter) {
    return static_cast<unsigned>(std::stoul(std::string(text.substr(text.find(letter) + 1))));
}

std::logic_error no_layout(const Shape& shape, Type type) {
    return std::logic_error("the reference has no fragment of m" + std::to_string(shape.m) + "n" +
                            std::to_string(shape.n) + "k" + std::to_string(shape.k) + " of type " +
                            std::to_string(int(type)));
}

}  // namespace

Shape shape_in(std::string_view spelling) {
    for (const std::string_view part : parts_of(spelling)) {
        if (part.size() > 3 && part[0] == 'm' && std::isdigit(static_cast<unsigned char>(part[1])) &&
            part.find('k') != part.npos)
            return {number_after(part, 'm'), number_after(part, 'n'), number_after(part, 'k')};
    }
    throw std::logic_error("no shape in " + std::string(spelling));
}

std::vector<Type> types_in(std::string_view spelling) {
    std::vector<Type> made;
    for (const std::string_view part : parts_of(spelling)) {
        if (const auto type = emulated::ptx::type_named(part)) made.push_back(*type);
    }
    return made;
}

unsigned matrix_bits(Type type) {
    switch (type) {
        case Type::b1:
            return 1;
        case Type::s4:
        case Type::u4:
            return 4;
        case Type::s8:
        case Type::u8:
        case Type::e4m3:
        case Type::e5m2:
            return 8;
        case Type::f16:
        case Type::bf16:
            return 16;
        case Type::f64:
            return 64;
        default:
            return 32;
    }
}

// --- fragments, as the sections "Matrix Fragments for mma..." list them ------------------------------

Place place_in_a(const Shape& shape, Type type, bool sparse, unsigned lane, unsigned i) {
    const unsigned g = lane >> 2, t = lane % 4, bits = matrix_bits(type);
    // A stored sparse A of 2 k columns is laid out as an A of k columns: the manual's "firstcol" is twice its column.
    const unsigned k = sparse ? shape.k / 2 : shape.k;
    const auto lower = [&](bool first) { return first ? g : g + 8; };
    if (shape.m == 8) {
        if (k == 4 && bits == 64) return {g, t};
        if (k == 16 && bits == 8) return {g, t * 4 + i};
        if (k == 32 && bits == 4) return {g, t * 8 + i};
        if (k == 128 && bits == 1) return {g, t * 32 + i};
    } else if (bits == 16) {
        if (k == 8) return {lower(i < 2), t * 2 + (i & 1)};
        if (k == 16) return {lower(i < 2 || (i >= 4 && i < 6)), t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
    } else if (bits == 32) {
        if (k == 4) return {lower(i == 0), t};
        if (k == 8) return {lower(i == 0 || i == 2), i < 2 ? t : t + 4};
    } else if (bits == 64) {
        if (k == 4) return {lower(i == 0), t};
        if (k == 8) return {lower(i == 0 || i == 2), i < 2 ? t : t + 4};
        if (k == 16) return {lower(i % 2 == 0), i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
    } else if (bits == 8) {
        if (k == 16) return {lower(i < 4), t * 4 + (i & 3)};
        if (k == 32) return {lower(i < 4 || (i >= 8 && i < 12)), t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
    } else if (bits == 4) {
        if (k == 32) return {lower(i < 8), t * 8 + (i & 7)};
        if (k == 64) return {lower(i < 8 || (i >= 16 && i < 24)), t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
    } else if (bits == 1) {
        if (k == 128) return {lower(i < 32), t * 32 + (i & 31)};
        if (k == 256) return {lower(i < 32 || (i >= 64 && i < 96)), t * 32 + (i & 31) + (i >= 64 ? 128 : 0)};
    }
    throw no_layout(shape, type);
}

Place place_in_b(const Shape& shape, Type type, bool sparse, unsigned lane, unsigned i) {
    const unsigned g = lane >> 2, t = lane % 4, bits = matrix_bits(type), k = shape.k;
    if (k == 4) return {t, g};
    if (bits == 16) {
        if (k == 8) return {t * 2 + i, g};
        if (k == 16) return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
        if (k == 32 && sparse) return {t * 2 + (i & 1) + 8 * (i / 2), g};
    } else if (bits == 32) {
        if (k == 8) return {i == 0 ? t : t + 4, g};
        if (k == 16 && sparse) return {t + 4 * i, g};
    } else if (bits == 64) {
        return {t + i * 4, g};
    } else if (bits == 8) {
        if (k == 16) return {t * 4 + i, g};
        if (k == 32) return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
        if (k == 64 && sparse) return {t * 4 + (i & 3) + 16 * (i / 4), g};
    } else if (bits == 4) {
        if (k == 32) return {t * 8 + i, g};
        if (k == 64) return {t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g};
        if (k == 128 && sparse) return {t * 8 + (i & 7) + 32 * (i / 8), g};
    } else if (bits == 1) {
        if (k == 128) return {t * 32 + i, g};
        if (k == 256) return {t * 32 + (i & 31) + (i >= 32 ? 128 : 0), g};
    }
    throw no_layout(shape, type);
}

Place place_in_c(const Shape& shape, unsigned lane, unsigned i) {
    const unsigned g = lane >> 2, t = lane % 4;
    return {shape.m == 16 && i >= 2 ? g + 8 : g, t * 2 + (i & 1)};
}

Place small_place_in_a(bool by_rows, unsigned lane, unsigned i) {
    if (by_rows) return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
    return {lane < 16 ? i % 4 : i % 4 + 4, lane % 4};
}
Place small_place_in_b(bool by_rows, unsigned lane, unsigned i) {
    if (by_rows) return {lane % 4, lane < 16 ? i : i + 4};
    return {i, lane < 16 ? lane % 4 : lane % 4 + 4};
}
Place small_place_in_c(Type type, unsigned lane, unsigned i) {
    if (type == Type::f16) return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
    const unsigned x = (lane & 1) + (i & 2);
    return {lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
}

// --- products ----------------------------------------------------------------------------------------------

double matrix_value(Type type, Bits bits) {
    const auto small = [&](int mantissa, int bias) {
        const double sign = bits & 0x80 ? -1 : 1;
        const int exponent = static_cast<int>(bits >> mantissa) & ((1 << (7 - mantissa)) - 1);
        const double fraction = static_cast<double>(bits & ((1u << mantissa) - 1)) / (1 << mantissa);
        return sign *
               (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
    };
    switch (type) {
        case Type::e4m3:
            return (bits & 0x7f) == 0x7f ? std::nan("") : small(3, 7);
        case Type::e5m2:
            if ((bits & 0x7f) > 0x7c) return std::nan("");
            if ((bits & 0x7f) == 0x7c) return bits & 0x80 ? -HUGE_VAL : HUGE_VAL;
            return small(2, 15);
        case Type::tf32:
            return value_of(Type::f32, bits & 0xffff'e000);
        case Type::s4:
            return static_cast<double>(bits & 15) - (bits & 8 ? 16 : 0);
        case Type::u4:
        case Type::b1:
            return static_cast<double>(bits);
        case Type::s8:
        case Type::u8:
        case Type::s32:
            return static_cast<double>(integer_of(type, bits));
        default:
            return value_of(type, bits);
    }
}

namespace {

Bits rounded_to(Type type, mpfr_rnd_t rounding, double value) {
    if (std::isnan(value)) return format_of(type).canonical_nan;
    return rounded(type, rounding, [&](mpfr_t to, mpfr_rnd_t r) { return mpfr_set_d(to, value, r); });
}

// Rounds each product and each sum to f32. Computing it as a double first does not change the result, because a double
// has more than 2 * 24 + 2 bits.
Bits float_sum(const Matrix& a, const Matrix& b, unsigned m, unsigned n, double first, Type d,
               const ProductRules& rules) {
    float sum = static_cast<float>(first);
    for (unsigned k = 0; k < a.columns; ++k) {
        if (!rules.stored.empty() && !rules.stored[m * a.columns + k]) continue;
        const auto each =
            static_cast<float>(matrix_value(a.type, a.at(m, k)) * matrix_value(b.type, b.at(k, n)));
        sum = static_cast<float>(double{sum} + double{each});
    }
    return rounded_to(d, MPFR_RNDN, double{sum});
}

Bits double_sum(const Matrix& a, const Matrix& b, unsigned m, unsigned n, Bits first, mpfr_rnd_t rounding) {
    Bits sum = first;
    for (unsigned k = 0; k < a.columns; ++k) {
        const Number x(value_of(Type::f64, a.at(m, k))), y(value_of(Type::f64, b.at(k, n))),
            z(value_of(Type::f64, sum));
        sum = rounded(Type::f64, rounding, [&](mpfr_t to, mpfr_rnd_t r) { return mpfr_fma(to, x, y, z, r); });
    }
    return sum;
}

Bits integer_sum(const Matrix& a, const Matrix& b, unsigned m, unsigned n, Bits first,
                 const ProductRules& rules) {
    Wide sum = integer_of(Type::s32, first);
    for (unsigned k = 0; k < a.columns; ++k) {
        if (!rules.stored.empty() && !rules.stored[m * a.columns + k]) continue;
        const Bits x = a.at(m, k), y = b.at(k, n);
        if (a.type == Type::b1)
            sum += static_cast<Wide>(rules.exclusive_or ? x ^ y : x & y);
        else
            sum += static_cast<Wide>(matrix_value(a.type, x)) * static_cast<Wide>(matrix_value(b.type, y));
    }
    return rules.saturates ? clamped(Type::s32, sum) : wrapped(Type::s32, sum);
}

}  // namespace

Matrix product(const Matrix& a, const Matrix& b, const Matrix& c, Type d, const ProductRules& rules) {
    Matrix made(d, a.rows, b.columns);
    for (unsigned m = 0; m < a.rows; ++m) {
        for (unsigned n = 0; n < b.columns; ++n) {
            const Bits first = c.at(m, n);
            made.at(m, n) = d == Type::s32   ? integer_sum(a, b, m, n, first, rules)
                            : d == Type::f64 ? double_sum(a, b, m, n, first, rules.rounding)
                                             : float_sum(a, b, m, n, value_of(c.type, first), d, rules);
        }
    }
    return made;
}

}  // namespace reference
