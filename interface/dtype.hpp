// Element types: "<f4" <-> DType <-> "float".
#pragma once

#include <cstdint>
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
        opaque,            ///< Vn: n bytes without a meaning (a struct, bfloat16)
        datetime,          ///< M8[unit]: a 64-bit integer with a unit
        timedelta,         ///< m8[unit]
        bit,               ///< t1: one bit an element; masks only
    };

    Kind kind = Kind::opaque;
    std::uint32_t itemsize = 0;  ///< bytes an element

    bool operator==(const DType&) const = default;

    /// The alignment that CUDA C++ gives an element of this type, in bytes: 16 for c16 (cuda::std::complex
    /// aligns itself as a whole), 1 for opaque bytes.
    std::uint32_t alignment() const noexcept;
};

/// Reads a typestr such as "<f4". Throws: ArgumentError (value, or type for O, S and U) whose message quotes
/// it, escaped.
DType parse_typestr(std::string_view typestr);

/// "<f4", "|u1", "|V12".
std::string to_typestr(DType dtype);

/// As people say it: "float32", "int64", "bool", "complex128", "12 opaque bytes".
std::string to_string(DType dtype);

/// The CUDA C++ spelling: "float", "long long", "unsigned char", "__half", "cuda::std::complex<float>"; empty
/// when there is none.
std::string_view cuda_name(DType dtype) noexcept;

}  // namespace bascule
