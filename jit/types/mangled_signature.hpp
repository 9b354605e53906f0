// Signatures of code that was compiled elsewhere: C++ types from the mangled name, sizes from the code itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// What the code itself says of one parameter of a kernel. A value.
struct CodeParameter {
    enum class Type : std::uint8_t {
        unknown,   ///< a number or an address, or of machine code anything
        floating,  ///< .f32, .f64
        pointer,   ///< .u64 .ptr
        bytes,     ///< .b8[16]: a class by value
    };
    std::uint32_t bytes = 0;
    std::uint32_t alignment = 1;
    Type type = Type::unknown;
};

/// "ns::scale<float>" and "float*, int" of "void ns::scale<float>(float*, int)".
struct DemangledKernel {
    std::string name;
    std::string parameters;
    bool is_typed = false;  ///< false: extern "C", or what no demangler reads; `name` is the mangled one then
};
DemangledKernel demangle_kernel(const std::string& mangled);

/// The signature of the kernel that code calls `mangled`. Where the name does not say a parameter's type, or says
/// another size than the code, the parameter is of the kind `untyped`. Parameters are called arg1, arg2.
Signature signature_from_name(const std::string& mangled, std::span<const CodeParameter> parameters);

}  // namespace bascule
