// One argument as the caller passed it, before it is compared with a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/dtype.hpp>
#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// A scalar before its conversion to a declared type. `kind` tells which member has the value.
struct Scalar {
    enum class Kind : std::uint8_t { boolean, integer, unsigned_integer, huge_integer, floating, complex };
    Kind kind = Kind::integer;
    bool boolean = false;
    std::int64_t integer = 0;            ///< Kind::integer: any int that fits
    std::uint64_t unsigned_integer = 0;  ///< Kind::unsigned_integer: above the largest int64
    /// The value if `kind` is floating. If it is huge_integer: the nearest double, because the integer is beyond 64
    /// bits.
    double floating = 0;
    double real = 0, imaginary = 0;  ///< Kind::complex
    /// The type of the value, for a NumPy scalar; empty for Python's own numbers.
    std::optional<DType> dtype{};
};

/// A device address that the user vouches for.
struct RawPointer {
    std::uint64_t address = 0;
};

/// Bytes for an opaque parameter of exactly that size.
struct RawBytes {
    std::span<const std::byte> bytes;
};

/// A Python tuple for a vector type or a struct. Its elements are numbers; arrays, addresses and null pointers
/// (`std::monostate`) for members that are pointers; and tuples for members that are arrays or structs.
struct TupleArgument {
    using Element =
        std::variant<std::monostate, Scalar, RawPointer, std::shared_ptr<const ArrayView>, TupleArgument>;
    std::vector<Element> elements;
};

/// A structure by value, with the layout of its fields.
struct StructuredScalar {
    std::span<const std::byte> bytes;
    std::shared_ptr<const StructLayout> layout;
    LayoutSource source = LayoutSource::dtype;
};

/// A texture or surface object, and the array that it accesses, whose stream the launch is ordered with.
struct ImageArgument {
    std::uint64_t handle = 0;
    bool is_surface = false;
    ArrayView array;
};

/// A tensor map: the bytes of its CUtensorMap for a parameter by value, and the address of a copy in device memory for
/// a pointer. The launch is ordered with the map's array. Borrows the bytes.
struct TensorMapArgument {
    const std::byte* encoded = nullptr;  ///< the CUtensorMap: tensor_map_bytes bytes
    std::uint64_t address = 0;           ///< in the memory of the launch's device; 0: there is no copy
    ArrayView array;
};

/// One argument. `std::monostate` is a null pointer (Python's None). Borrows bytes.
using ArgumentValue = std::variant<std::monostate, ArrayView, Scalar, RawPointer, RawBytes, TupleArgument,
                                   StructuredScalar, ImageArgument, TensorMapArgument>;

}  // namespace bascule
