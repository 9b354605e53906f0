// The source of a module's images if it is not one text: existing code, or several linked texts.
#pragma once

#include <variant>
#include <vector>

#include <bascule/jit/link/code.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/questions/probed_program.hpp>

namespace bascule {

/// One text of a linked program, with its own options and template instances.
struct LinkedText {
    Source source;
    CompileOptions options;
    std::vector<Instance> instances;
};
using LinkedPart = std::variant<LinkedText, Code>;

/// The program that compiles a text. `functions_too`: all functions that are not templates, in addition to the instances.
inline Program program_of(LinkedText text, bool functions_too, Arch arch) {
    Program program{.source = std::move(text.source),
                    .options = std::move(text.options),
                    .arch = arch,
                    .instances = std::move(text.instances),
                    .functions_too = functions_too};
    // The emulated device, which takes virtual architectures, names source lines in its reports.
    program.options.lineinfo = program.options.lineinfo || arch.is_virtual;
    return program;
}

/// Immutable; any thread may use it.
class ImageSource {
  public:
    virtual ~ImageSource() = default;
    /// Throws: CompileError, LibraryError, CudaError.
    virtual Cache::Lookup image(Arch arch) const = 0;
    /// The texts that it contains, compiled for this architecture, so that the compiler can be asked about their contents.
    virtual std::vector<ProbedProgram> programs(Arch arch) const = 0;
    /// The parts that another link uses in place of the module.
    virtual std::vector<LinkedPart> parts() const = 0;
};

}  // namespace bascule
