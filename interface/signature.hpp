// What a kernel declares: its parameters' C++ types, with sizes and alignments as the compiler gave them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/dtype.hpp>

namespace bascule {

/// One parameter's type, reduced to what an argument is checked against. A value.
struct ParameterType {
    enum class Kind : std::uint8_t {
        scalar,      ///< bool, integers, float, double, __half, __nv_bfloat16, complex
        pointer,     ///< T*; `any_element` for void*
        array_view,  ///< bascule::array_view<T, rank>
        opaque,      ///< anything else passed by value
    };

    Kind kind = Kind::opaque;
    DType dtype;                  ///< of the scalar, or of the elements
    bool bfloat16 = false;        ///< the scalar or the element is __nv_bfloat16: dtype is two opaque bytes
    bool character = false;       ///< plain `char`: takes i1 and u1
    bool any_element = false;     ///< void*
    bool opaque_element = false;  ///< a pointer to, or a view of, a type that we cannot name a dtype for
    bool constant = false;        ///< the elements are const: read-only arrays are welcome
    int rank = 1;                 ///< of an array_view
    std::uint32_t alignment = 1;  ///< of one element, in bytes (pointer, array_view)
};

/// One parameter of a kernel.
struct Parameter {
    std::string name;      ///< "x"; "arg2" where the text gives none
    std::string spelling;  ///< the C++ type as a person writes it: "const float*"
    ParameterType type;
    std::uint32_t bytes = 0;      ///< sizeof
    std::uint32_t alignment = 1;  ///< alignof
    std::uint32_t offset = 0;     ///< in the parameter buffer
};

/// A kernel's whole parameter list.
struct Signature {
    std::string kernel;  ///< qualified name: "ns::saxpy<float>"
    std::vector<Parameter> parameters;
    std::uint32_t bytes = 0;  ///< of the parameter buffer

    /// Index of the parameter called `name`, or -1.
    int find(std::string_view name) const noexcept;
};

/// Fills in the offsets and the total, each parameter aligned as the compiler said.
void lay_out(Signature& signature) noexcept;

/// "void saxpy(float a, const float* x, float* y)".
std::string to_string(const Signature& signature);

}  // namespace bascule
