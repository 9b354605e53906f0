// Every check that an array interface has to pass, by name, with the row of CONFORMANCE.md that it is for.
// Tests switch them off one at a time and see that row fail. Only a build with tests can do that, which
// defines BASCULE_TEST_HOOKS for every target that sees this header; it is not installed, so that no one
// else's view of it can differ from the library's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bascule {

// X(name, row). What a check lets through when it is off must still be safe to carry on with.
#define BASCULE_CHECKS(X)          \
    /* access */                   \
    X(attribute_error, 1)          \
    X(producer_exception, 2)       \
    X(mapping, 4)                  \
    X(instance, 4)                 \
    /* version */                  \
    X(version_present, 13)         \
    X(version_integer, 14)         \
    X(version_negative, 14)        \
    X(version_range, 15)           \
    X(version_newer, 15)           \
    /* shape */                    \
    X(shape_present, 17)           \
    X(shape_sequence, 17)          \
    X(extent_integer, 17)          \
    X(extent_bool, 19)             \
    X(extent_negative, 20)         \
    X(extent_range, 21)            \
    X(shape_bytes, 21)             \
    X(shape_dimensions, 22)        \
    X(shape_length, 22)            \
    /* typestr and descr */        \
    X(typestr_big_endian, 24)      \
    X(element_type, 26)            \
    X(descr_total, 27)             \
    X(descr_form, 29)              \
    X(descr_contradiction, 29)     \
    X(typestr_object, 30)          \
    X(typestr_unit, 31)            \
    X(typestr_string, 32)          \
    X(bits, 32)                    \
    X(typestr_present, 33)         \
    X(typestr_text, 33)            \
    X(typestr_unicode, 33)         \
    X(typestr_form, 33)            \
    X(typestr_order, 33)           \
    X(typestr_size, 33)            \
    X(typestr_known, 33)           \
    /* data */                     \
    X(data_present, 34)            \
    X(data_sequence, 34)           \
    X(data_pair, 34)               \
    X(pointer_none, 35)            \
    X(pointer_null, 38)            \
    X(pointer_integer, 39)         \
    X(pointer_range, 39)           \
    X(readonly_flag, 40)           \
    X(readonly_access, 41)         \
    X(address_space, 42)           \
    X(pointer_alignment, 42)       \
    /* strides */                  \
    X(contiguous, 44)              \
    X(broadcast, 46)               \
    X(strides_count, 47)           \
    X(stride_alignment, 49)        \
    X(span_order, 49)              \
    X(strides_sequence, 50)        \
    X(stride_integer, 50)          \
    X(stride_range, 50)            \
    X(strides_reach, 50)           \
    /* mask, stream, provenance */ \
    X(mask_parameter, 51)          \
    X(mask_interface, 52)          \
    X(mask_nested, 52)             \
    X(mask_kind, 52)               \
    X(mask_shape, 52)              \
    X(mask_layout, 52)             \
    X(mask_bits, 52)               \
    X(stream_zero, 54)             \
    X(stream_integer, 56)          \
    X(stream_range, 56)            \
    X(memory_known, 58)            \
    X(memory_device, 60)           \
    X(memory_extent, 62)

enum class Check : std::uint8_t {
#define BASCULE_CHECK(name, row) name,
    BASCULE_CHECKS(BASCULE_CHECK)
#undef BASCULE_CHECK
};

#ifndef BASCULE_TEST_HOOKS

/// Asked after something was found wrong: `if (extent < 0 && checked(Check::extent_negative)) fail(...)`.
constexpr bool checked(Check) noexcept { return true; }

#else

struct CheckRow {
    std::string_view name;
    int row = 0;
};

inline constexpr std::array check_rows = {
#define BASCULE_CHECK(name, row) CheckRow{#name, row},
    BASCULE_CHECKS(BASCULE_CHECK)
#undef BASCULE_CHECK
};

namespace detail {
inline std::array<std::atomic<bool>, check_rows.size()> switched_off{};
}

/// False only in a test that has switched the check off.
inline bool checked(Check check) noexcept {
    return !detail::switched_off[static_cast<std::size_t>(check)].load(std::memory_order_relaxed);
}

inline void switch_check(Check check, bool on) noexcept {
    detail::switched_off[static_cast<std::size_t>(check)].store(!on, std::memory_order_relaxed);
}

/// The check of that name.
inline std::optional<Check> find_check(std::string_view name) noexcept {
    for (std::size_t i = 0; i < check_rows.size(); ++i) {
        if (check_rows[i].name == name) return static_cast<Check>(i);
    }
    return std::nullopt;
}

#endif

}  // namespace bascule
