// Element types: "<f4" <-> DType <-> "float".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bascule {

/// An element type as the array interface's `typestr` names it, in this machine's byte order. A small value.
struct DType {
    enum class Kind : std::uint8_t {
        boolean,           ///< b1
        signed_integer,    ///< i1 i2 i4 i8
        unsigned_integer,  ///< u1 u2 u4 u8
        floating,          ///< f2 f4 f8
        complex,           ///< c8 c16
        opaque,            ///< Vn: n bytes without a meaning (a struct), or with that of `format`
        datetime,          ///< M8[unit]: a 64-bit integer with a unit
        timedelta,         ///< m8[unit]
        bit,               ///< t1: one bit an element; masks only
    };
    /// What opaque bytes mean, by the names of ml_dtypes. A typestr has no letter for these, so that bytes
    /// which came with a typestr alone mean `none`; bytes of a named array, and what a kernel declares, mean
    /// one.
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
    /// NumPy's units of time; `generic` where a typestr names none.
    enum class TimeUnit : std::uint8_t { generic, Y, M, W, D, h, m, s, ms, us, ns, ps, fs, as };

    Kind kind = Kind::opaque;
    std::uint32_t itemsize = 0;  ///< bytes an element
    Format format = Format::none;
    TimeUnit unit = TimeUnit::generic;
    std::uint32_t count = 1;  ///< units that one step of a time stands for: 25 in "M8[25s]"

    bool operator==(const DType&) const = default;

    /// The alignment that CUDA C++ gives an element of this type, in bytes: 16 for c16 (cuda::std::complex
    /// aligns itself as a whole), 1 for opaque bytes.
    std::uint32_t alignment() const noexcept;
};

/// The element type that ml_dtypes calls by this name; nothing where there is none.
std::optional<DType> dtype_named(std::string_view name) noexcept;

/// Whether elements of `given` can be what a kernel declares as `declared`: the same type, or bytes of the
/// same number where one side does not say what they mean.
bool same_elements(DType declared, DType given) noexcept;

/// What numbers of this type are: its kind, and for a format floating or an integer by its name.
DType::Kind number_kind(DType dtype) noexcept;
/// Of either sign, formats among them.
bool is_integer(DType dtype) noexcept;

/// Reads a typestr such as "<f4". Throws: ArgumentError (value, or type for O, S and U) whose message quotes
/// it, escaped.
DType parse_typestr(std::string_view typestr);

/// "<f4", "|u1", "|V12", "<M8[25s]"; for a format what NumPy says of ml_dtypes' own: "<V2" for bfloat16.
std::string to_typestr(DType dtype);

/// As people say it: "float32", "int64", "bool", "complex128", "datetime64[ns]", "bfloat16", "12 opaque
/// bytes".
std::string to_string(DType dtype);

/// The CUDA C++ spelling: "float", "long long", "unsigned char", "__half", "cuda::std::complex<float>",
/// "__nv_fp8_e4m3"; empty when there is none.
std::string_view cuda_name(DType dtype) noexcept;

}  // namespace bascule
