// Names of a program's __device__ and __constant__ variables: as expressions, in images and in its text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/types/dimensions.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// A variable as an array sees it. A value.
struct Variable {
    std::string name;  ///< as it was asked for: "ns::table", "scale<float>"
    std::string
        lowered_name;  ///< its name in an image that was compiled as this was; empty if it is `__managed__`
    DType
        dtype;  ///< of an element: a struct or union is opaque bytes, an enumeration or a pointer an integer
    Dimensions shape;       ///< the declared extents; a vector type (float4) is one axis more
    bool constant = false;  ///< declared const: what the host writes may never be read

    std::uint64_t bytes() const noexcept;
};

/// What the image with this PTX calls the variable. The name of a static variable, and of one in an unnamed namespace, is
/// made from what else was compiled with it, so that an image of a template's instances has another one.
std::string name_in_image(const Variable& variable, std::string_view ptx);

/// A mangled name without what differs between images of one text: the same for one variable in all of them.
std::string name_in_every_image(const std::string& lowered_name);

/// How the text names the variable of a mangled name: "ns::table", "scale<float>". Empty where it has no name for it, as of a
/// variable in a function.
std::string name_in_text(const std::string& lowered_name);

/// Whether this PTX has variables that outlive a launch: `__device__`, `__constant__` and static ones, constants too.
bool has_variables(std::string_view ptx) noexcept;

/// The names of the variables that the text declares itself, as messages list them: what headers, macros and
/// templates bring is not seen.
std::vector<std::string> find_variables(std::string_view text);

/// `name` with its namespaces: "table<float>" becomes "ns::table<float>" where only one of the `known` has that last component.
/// Unchanged where none has. Throws: CompileError where several have.
std::string qualified_variable(const std::string& name, const std::vector<std::string>& known,
                               const std::string& source_name);

}  // namespace bascule
