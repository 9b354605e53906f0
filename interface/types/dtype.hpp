// Element types: "<f4" <-> DType <-> "float" <-> the type of a C++ program.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace bascule {

/// An element type as the array interface's `typestr` names it, in this machine's byte order. A small value type.
struct DType {
    enum class Kind : std::uint8_t {
        boolean,           ///< b1
        signed_integer,    ///< i1 i2 i4 i8
        unsigned_integer,  ///< u1 u2 u4 u8
        floating,          ///< f2 f4 f8
        complex,           ///< c8 c16
        opaque,            ///< Vn: n bytes without a meaning (a struct), or with the meaning of `format`
        datetime,          ///< M8[unit]: a 64-bit integer with a unit
        timedelta,         ///< m8[unit]
        bit,               ///< t1: one bit per element; masks only
    };
    /// The meaning of opaque bytes, named as in ml_dtypes. A typestr has no letters for these formats: bytes that are
    /// known by their typestr alone have `none`. Arrays whose dtype has a name, and kernel parameters, have a format.
    enum class Format : std::uint8_t {
        none,
        bfloat16,
        float8_e4m3fn,
        float8_e5m2,
        float8_e8m0fnu,
        float6_e2m3fn,
        float6_e3m2fn,
        float4_e2m1fn,
        float8_e3m4,  // from here on CUDA C++ has no type
        float8_e4m3,
        float8_e4m3b11fnuz,
        float8_e4m3fnuz,
        float8_e5m2fnuz,
        int1,
        int2,
        int4,
        uint1,
        uint2,
        uint4,
    };
    /// NumPy's units of time; `generic` if the typestr names no unit.
    enum class TimeUnit : std::uint8_t { generic, Y, M, W, D, h, m, s, ms, us, ns, ps, fs, as };

    Kind kind = Kind::opaque;
    std::uint32_t itemsize = 0;  ///< bytes of one element
    Format format = Format::none;
    TimeUnit unit = TimeUnit::generic;
    std::uint32_t count = 1;  ///< how many units one step of a time is: 25 in "M8[25s]"

    bool operator==(const DType&) const = default;

    /// The alignment that CUDA C++ gives an element of this type, in bytes: 16 for c16 (cuda::std::complex
    /// aligns itself as a whole), 1 for opaque bytes.
    std::uint32_t alignment() const noexcept;
};

/// All element types, once each: the parser, the C++ names, DLPack and reflection are derived from these rows.
struct ElementType {
    DType dtype;
    char letter = 'V';          ///< in a typestr; for a format, the letter that NumPy prints
    std::string_view name;      ///< the name in NumPy and ml_dtypes
    std::string_view cuda{};    ///< the type in CUDA C++; empty if there is none
    std::string_view header{};  ///< the header that declares that type
    int dlpack = -1;            ///< DLPack's type code; -1: not exchanged
};

inline constexpr std::array element_types = [] {
    using enum DType::Kind;
    using enum DType::Format;
    constexpr std::string_view half = "cuda_fp16.h", brain = "cuda_bf16.h",
                               complex_numbers = "cuda/std/complex";
    constexpr std::string_view fp8 = "cuda_fp8.h", fp6 = "cuda_fp6.h", fp4 = "cuda_fp4.h";
    return std::array{
        ElementType{{boolean, 1}, 'b', "bool", "bool", "", 6},
        ElementType{{signed_integer, 1}, 'i', "int8", "signed char", "", 0},
        ElementType{{signed_integer, 2}, 'i', "int16", "short", "", 0},
        ElementType{{signed_integer, 4}, 'i', "int32", "int", "", 0},
        ElementType{{signed_integer, 8}, 'i', "int64", "long long", "", 0},
        ElementType{{unsigned_integer, 1}, 'u', "uint8", "unsigned char", "", 1},
        ElementType{{unsigned_integer, 2}, 'u', "uint16", "unsigned short", "", 1},
        ElementType{{unsigned_integer, 4}, 'u', "uint32", "unsigned int", "", 1},
        ElementType{{unsigned_integer, 8}, 'u', "uint64", "unsigned long long", "", 1},
        ElementType{{floating, 2}, 'f', "float16", "__half", half, 2},
        ElementType{{floating, 4}, 'f', "float32", "float", "", 2},
        ElementType{{floating, 8}, 'f', "float64", "double", "", 2},
        ElementType{{complex, 8}, 'c', "complex64", "cuda::std::complex<float>", complex_numbers, 5},
        ElementType{{complex, 16}, 'c', "complex128", "cuda::std::complex<double>", complex_numbers, 5},
        ElementType{{datetime, 8}, 'M', "datetime64", "long long"},
        ElementType{{timedelta, 8}, 'm', "timedelta64", "long long"},
        ElementType{{bit, 1}, 't', "one bit per element"},
        ElementType{{opaque, 2, bfloat16}, 'V', "bfloat16", "__nv_bfloat16", brain, 4},
        ElementType{{opaque, 1, float8_e4m3fn}, 'V', "float8_e4m3fn", "__nv_fp8_e4m3", fp8, 10},
        ElementType{{opaque, 1, float8_e5m2}, 'f', "float8_e5m2", "__nv_fp8_e5m2", fp8, 12},
        ElementType{{opaque, 1, float8_e8m0fnu}, 'V', "float8_e8m0fnu", "__nv_fp8_e8m0", fp8, 14},
        ElementType{{opaque, 1, float6_e2m3fn}, 'V', "float6_e2m3fn", "__nv_fp6_e2m3", fp6},
        ElementType{{opaque, 1, float6_e3m2fn}, 'V', "float6_e3m2fn", "__nv_fp6_e3m2", fp6},
        ElementType{{opaque, 1, float4_e2m1fn}, 'V', "float4_e2m1fn", "__nv_fp4_e2m1", fp4},
        ElementType{{opaque, 1, float8_e3m4}, 'V', "float8_e3m4", "", "", 7},
        ElementType{{opaque, 1, float8_e4m3}, 'V', "float8_e4m3", "", "", 8},
        ElementType{{opaque, 1, float8_e4m3b11fnuz}, 'V', "float8_e4m3b11fnuz", "", "", 9},
        ElementType{{opaque, 1, float8_e4m3fnuz}, 'V', "float8_e4m3fnuz", "", "", 11},
        ElementType{{opaque, 1, float8_e5m2fnuz}, 'V', "float8_e5m2fnuz", "", "", 13},
        ElementType{{opaque, 1, int1}, 'V', "int1"},
        ElementType{{opaque, 1, int2}, 'V', "int2"},
        ElementType{{opaque, 1, int4}, 'V', "int4"},
        ElementType{{opaque, 1, uint1}, 'V', "uint1"},
        ElementType{{opaque, 1, uint2}, 'V', "uint2"},
        ElementType{{opaque, 1, uint4}, 'V', "uint4"},
    };
}();

/// The row of a type, for any unit of time; null for bytes without a format.
constexpr const ElementType* element_type(DType dtype) noexcept {
    const auto row = std::ranges::find_if(element_types, [&](const ElementType& each) {
        return dtype.format == DType::Format::none
                   ? each.dtype.kind == dtype.kind && each.dtype.itemsize == dtype.itemsize &&
                         each.dtype.format == DType::Format::none
                   : each.dtype.format == dtype.format;
    });
    return row == element_types.end() ? nullptr : &*row;
}

/// The element type with this name in ml_dtypes, or nothing.
std::optional<DType> dtype_named(std::string_view name) noexcept;

/// Whether an array with elements `given` fits a kernel that declares `declared`: both are the same type, or both are
/// opaque bytes of the same size and one has no format.
bool same_elements(DType declared, DType given) noexcept;

/// The kind of number; a format counts as floating or as an integer.
DType::Kind number_kind(DType dtype) noexcept;
/// True for signed and unsigned integers, including integer formats.
bool is_integer(DType dtype) noexcept;

/// Reads a typestr such as "<f4". Throws: ArgumentError (value, or type for O, S and U) whose message quotes
/// it, escaped.
DType parse_typestr(std::string_view typestr);

/// "<f4", "|u1", "|V12", "<M8[25s]"; for a format the typestr of the ml_dtypes dtype: "<V2" for bfloat16.
std::string to_typestr(DType dtype);

/// The name in messages: "float32", "int64", "bool", "complex128", "datetime64[ns]", "bfloat16", "12 opaque bytes".
std::string to_string(DType dtype);

/// The CUDA C++ spelling: "float", "long long", "unsigned char", "__half", "cuda::std::complex<float>",
/// "__nv_fp8_e4m3"; empty if CUDA C++ has no such type.
std::string_view cuda_name(DType dtype) noexcept;

/// The largest value of this integer type.
std::uint64_t largest_integer(DType dtype) noexcept;

namespace detail {

/// The dtype of a C++ number type; its itemsize is 0 for all other types.
template <class T>
constexpr DType number_dtype() noexcept {
    using Kind = DType::Kind;
    if constexpr (std::is_same_v<T, bool>) {
        return {Kind::boolean, 1};
    } else if constexpr (std::is_integral_v<T>) {
        return {std::is_signed_v<T> ? Kind::signed_integer : Kind::unsigned_integer, sizeof(T)};
    } else if constexpr (std::is_floating_point_v<T> && sizeof(T) <= 8) {
        return {Kind::floating, sizeof(T)};
    } else {
        return {Kind::opaque, 0};
    }
}

/// The dtype of array elements of type T; structures become opaque bytes.
template <class T>
constexpr DType element_dtype() noexcept {
    constexpr DType number = number_dtype<T>();
    return number.itemsize > 0 ? number : DType{DType::Kind::opaque, sizeof(T)};
}

}  // namespace detail

}  // namespace bascule
