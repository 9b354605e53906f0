// PTX's fundamental types, and the state spaces a variable can live in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace emulated::ptx {

enum class Type : std::uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64,
    count,
};

struct TypeName {
    std::string_view name;
    std::uint8_t bytes;  ///< of a register of this type; 8-bit values live in 16-bit registers
};

inline constexpr TypeName type_names[] = {
    {"", 0},    {"pred", 4},  {"b8", 1},   {"b16", 2},    {"b32", 4}, {"b64", 8}, {"u8", 1},
    {"u16", 2}, {"u32", 4},   {"u64", 8},  {"s8", 1},     {"s16", 2}, {"s32", 4}, {"s64", 8},
    {"f16", 2}, {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4}, {"f32", 4}, {"f64", 8},
};

constexpr unsigned bytes_of(Type type) { return type_names[static_cast<unsigned>(type)].bytes; }
constexpr bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }
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
