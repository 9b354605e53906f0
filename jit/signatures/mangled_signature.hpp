// Signatures of code that was compiled elsewhere: C++ types from the mangled name, sizes from the code itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// A parameter of a kernel as the code itself describes it. A value type.
struct CodeParameter {
    enum class Type : std::uint8_t {
        unknown,   ///< in PTX a number or an address; in machine code anything
        floating,  ///< .f32, .f64
        pointer,   ///< .u64 .ptr
        bytes,     ///< .b8[16]: a class by value
    };
    std::uint32_t bytes = 0;
    std::uint32_t alignment = 1;
    Type type = Type::unknown;
};

/// For "void ns::scale<float>(float*, int)": "ns::scale<float>" and "float*, int".
struct DemangledKernel {
    std::string name;
    std::string parameters;
    /// False for extern "C" and for names that cannot be demangled; `name` is then the mangled name.
    bool is_typed = false;
};
DemangledKernel demangle_kernel(const std::string& mangled);

/// The signature of the kernel with the mangled name `mangled`. If the name does not give a parameter's type, or gives
/// another size than the code, the parameter has the kind `untyped`. Parameters are called arg1, arg2.
Signature signature_from_name(const std::string& mangled, std::span<const CodeParameter> parameters);

}  // namespace bascule
