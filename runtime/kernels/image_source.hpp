// Where a module's images come from when it is not one text: code from elsewhere, or several texts that are linked.
#pragma once

#include <variant>
#include <vector>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/link/code.hpp>
#include <bascule/jit/probes/probed_program.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// One text of a linked program, with its own options and what it instantiates.
struct LinkedText {
    Source source;
    CompileOptions options;
    std::vector<Instance> instances;
};
using LinkedPart = std::variant<LinkedText, Code>;

/// What is compiled of a text. `functions_too`: beside the instances every function that is not a template.
Program program_of(LinkedText text, bool functions_too, Arch arch);

/// Immutable; any thread may use it.
class ImageSource {
  public:
    virtual ~ImageSource() = default;
    /// Throws: CompileError, LibraryError, CudaError.
    virtual Cache::Lookup image(Arch arch) const = 0;
    /// The texts in it, compiled for this architecture: of what they have, the compiler can be asked.
    virtual std::vector<ProbedProgram> programs(Arch arch) const = 0;
    /// What another link takes instead of the module.
    virtual std::vector<LinkedPart> parts() const = 0;
};

}  // namespace bascule
