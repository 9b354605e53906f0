// Source + options + architecture -> Image.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <bascule/jit/image.hpp>
#include <bascule/jit/nvrtc.hpp>
#include <bascule/jit/source.hpp>

namespace bascule {

/// Everything that decides what a compile gives.
struct Program {
    Source source;
    CompileOptions options;
    Arch arch;
};

/// Compiles programs with one NVRTC, which is loaded at the first compile. Thread-safe.
class Compiler {
  public:
    explicit Compiler(ToolkitLocation location = default_toolkit());
    ~Compiler();

    /// Every kernel of the text that is no template, its signature reflected, in one compile.
    /// Throws: CompileError with the user's own file and line; LibraryError.
    Image compile(const Program& program) { return compile(program, *nvrtc()); }
    /// The same, with this library.
    static Image compile(const Program& program, const Nvrtc& nvrtc);

    /// The library that compiles, loaded now if it was not yet. Throws: LibraryError.
    std::shared_ptr<const Nvrtc> nvrtc();

    /// Looks elsewhere from the next compile on; what is loaded already stays loaded.
    void set_location(ToolkitLocation location);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bascule
