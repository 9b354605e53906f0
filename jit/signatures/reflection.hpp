// Reads signatures from mangled names: from those by which NVRTC reflects a parameter list, so that the compiler
// determines the parameters; and for code that was compiled elsewhere, from the kernel's own name and the sizes in the code.
#pragma once

#include <span>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// The name expression that reflects `kernel`'s parameter list: bascule::signature<decltype(&ns::scale)>.
std::string signature_expression(const std::string& kernel);

/// Reads the lowered name of that expression. `names` are the parameters' names from the text (may be shorter). Throws:
/// Error if the name does not have that form, because of a bug in Bascule or a new NVRTC; the message shows the name.
Signature read_signature(const std::string& lowered_name, const std::string& kernel,
                         const std::vector<std::string>& names);

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
