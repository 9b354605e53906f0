// The compiler that programs share: one NVRTC, loaded at the first compile.
#pragma once

#include <memory>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Compiles programs with one NVRTC, which is loaded at the first compile and shared with whoever compiles
/// meanwhile. Remembers nothing of what it compiled: that is Cache's work. Asks no driver. Any thread may use
/// it, several at once; it must outlive their calls.
class Compiler {
  public:
    /// Where to look for NVRTC; nothing is looked for yet.
    explicit Compiler(ToolkitLocation location = default_toolkit());
    ~Compiler();

    /// Every kernel of the text that is not a template, its signature reflected, in one compile.
    /// Throws: CompileError with the user's own file and line; LibraryError.
    Image compile(const Program& program) { return compile(program, *nvrtc()); }
    /// The same, with this library. `reached`: the headers that the program will read, without which there are no
    /// precompiled ones; null when they are not known.
    static Image compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached = nullptr);

    /// What will load the code, which decides between several NVRTCs from the next compile on.
    void set_limit(const DriverLimit& limit);

    /// The library that compiles, loaded now if it was not yet. Throws: LibraryError.
    std::shared_ptr<const Nvrtc> nvrtc();

    /// Looks elsewhere from the next compile on; what is loaded already stays loaded.
    void set_location(ToolkitLocation location);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bascule
