// A program's __device__ and __constant__ variables: what the compiler says of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/jit/cache/cache.hpp>

namespace bascule {

/// A variable as an array sees it. A value.
struct Variable {
    std::string name;          ///< as it was asked for: "ns::table", "scale<float>"
    std::string lowered_name;  ///< as an image calls it that was compiled as this was
    DType
        dtype;  ///< of an element: a struct or union is opaque bytes, an enumeration or a pointer an integer
    Dimensions shape;       ///< the declared extents; a vector type (float4) is one axis more
    bool constant = false;  ///< declared const: what the host writes may never be read

    std::uint64_t bytes() const noexcept;
};

/// Asks the compiler, through the cache. `program` says text, options and architecture; its instances and its
/// purpose do not matter. Throws: CompileError; its `name_expression` is set where the text is right and the
/// name is not.
Variable reflect_variable(Cache& cache, Program program, const std::string& name);

/// What `image` calls the variable. The name of a static variable, and of one in an unnamed namespace, is
/// made from what else was compiled with it, so that an image of a template's instances has another one.
std::string name_in_image(const Variable& variable, const Image& image);

/// Whether it is a `__constant__` variable. `name` is what `image` calls it.
bool is_in_constant_memory(std::string_view name, const Image& image) noexcept;

/// The names of the variables that the text declares itself, as messages list them: what headers, macros and
/// templates bring is not seen.
std::vector<std::string> find_variables(std::string_view text);

/// The name expression that reflects a variable's type.
std::string variable_expression(const std::string& name);
/// The same where the type has no name (`struct { int n; } v;`), which the compiler refuses above: its size.
std::string nameless_variable_expression(const std::string& name);

/// Reads what a compile gave for it. Throws: Error when it is not of that form (a defect of ours).
Variable read_variable(const KernelImage& image);

}  // namespace bascule
