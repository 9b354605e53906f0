// Names of a program's __device__ and __constant__ variables: as expressions, in images and in its text.
#pragma once

#include <vector>

#include <bascule/interface/types/dimensions.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// The properties of a variable that an array needs. A value type.
struct Variable {
    std::string name;          ///< the name that was asked for: "ns::table", "scale<float>"
    std::string lowered_name;  ///< in images that are compiled in the same way; empty if it is `__managed__`
    DType dtype;            ///< of an element: a struct is opaque bytes, an enumeration or pointer an integer
    Dimensions shape;       ///< the declared extents; a vector type (float4) adds an axis
    bool constant = false;  ///< declared const: kernels may never read what the host writes

    std::uint64_t bytes() const noexcept;
};

/// The variable's name in the image with this PTX. The mangled name of a static variable, or of one in an unnamed
/// namespace, depends on what else was compiled with it, so it differs in images of template instances.
std::string name_in_image(const Variable& variable, std::string_view ptx);

/// A mangled name without the parts that differ between images of one text: equal for one variable in all of them.
std::string name_in_every_image(const std::string& lowered_name);

/// The text's name for the variable with this mangled name: "ns::table", "scale<float>". Empty if the text has no name
/// for it, as for a variable in a function.
std::string name_in_text(const std::string& lowered_name);

/// Whether this PTX has variables that outlive a launch: `__device__`, `__constant__` and static ones, and those that
/// the compiler makes, such as the strings of printf.
bool has_variables(std::string_view ptx) noexcept;

/// The names of the text's own variables, for messages. Does not see those from headers, macros and templates.
std::vector<std::string> find_variables(std::string_view text);

/// `name` with its namespaces: "table<float>" becomes "ns::table<float>" if only one of `known` has that last
/// component. Unchanged if none has it. Throws: CompileError if several have it.
std::string qualified_variable(const std::string& name, const std::vector<std::string>& known,
                               const std::string& source_name);

}  // namespace bascule
