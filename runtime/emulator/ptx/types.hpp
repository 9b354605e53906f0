// PTX's fundamental types, and the state spaces a variable can live in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace emulated::ptx {

// clang-format off
/// Types with the size of a value in bytes. An 8-bit value is in a 16-bit register.
#define BASCULE_PTX_TYPES(TYPE) \
    TYPE(pred, 4) TYPE(b8, 1) TYPE(b16, 2) TYPE(b32, 4) TYPE(b64, 8) TYPE(u8, 1) TYPE(u16, 2) TYPE(u32, 4) \
    TYPE(u64, 8) TYPE(s8, 1) TYPE(s16, 2) TYPE(s32, 4) TYPE(s64, 8) TYPE(f16, 2) TYPE(f16x2, 4) TYPE(bf16, 2) \
    TYPE(bf16x2, 4) TYPE(f32, 4) TYPE(f64, 8) \
    /* elements of matrices */ TYPE(tf32, 4) TYPE(e4m3, 1) TYPE(e5m2, 1) TYPE(s4, 1) TYPE(u4, 1) TYPE(b1, 1) \
    TYPE(e4m3x2, 2) TYPE(e5m2x2, 2) TYPE(u16x2, 4) TYPE(s16x2, 4) TYPE(b128, 16)

enum class Type : std::uint8_t {
    none,
#define TYPE(name, bytes) name,
    BASCULE_PTX_TYPES(TYPE)
#undef TYPE
    count,
};

struct TypeName {
    std::string_view name;
    std::uint8_t bytes;
};

inline constexpr TypeName type_names[] = {
    {"", 0},
#define TYPE(name, bytes) {#name, bytes},
    BASCULE_PTX_TYPES(TYPE)
#undef TYPE
};
// clang-format on

constexpr unsigned bytes_of(Type type) { return type_names[static_cast<unsigned>(type)].bytes; }
constexpr bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }
constexpr bool is_integer(Type type) { return type >= Type::u8 && type <= Type::s64; }
constexpr bool is_bits(Type type) { return (type >= Type::b8 && type <= Type::b64) || type == Type::b128; }
constexpr bool is_float(Type type) { return type >= Type::f16 && type <= Type::f64; }

/// `name` without its dot.
constexpr std::optional<Type> type_named(std::string_view name) {
    for (unsigned i = 1; i < static_cast<unsigned>(Type::count); ++i) {
        if (type_names[i].name == name) return static_cast<Type>(i);
    }
    return std::nullopt;
}

enum class Space : std::uint8_t { generic, global, constant, shared, local, param, reg };

}  // namespace emulated::ptx
