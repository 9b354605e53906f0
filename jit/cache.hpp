// Compiles each program once: memory over compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <bascule/jit/compiler.hpp>
#include <bascule/jit/image.hpp>

namespace bascule {

/// Where an image came from.
enum class Origin : std::uint8_t { compiled, memory, disk };

const char* to_string(Origin origin) noexcept;  ///< "compiled", "memory", "disk"

/// Counts since the process started.
struct CacheStatistics {
    std::uint64_t compiled = 0;  ///< programs whose image was compiled
    std::uint64_t from_memory = 0;
    std::uint64_t from_disk = 0;
    std::uint64_t nvrtc_calls = 0;  ///< of nvrtcCompileProgram
};

/// Images by program. Concurrent requests for one program compile it once: the others wait and share the
/// outcome, a failure too; failures are not kept. Thread-safe; no lock is held while compiling.
class Cache {
  public:
    explicit Cache(std::shared_ptr<Compiler> compiler);
    ~Cache();

    struct Lookup {
        std::shared_ptr<const Image> image;
        Origin origin = Origin::compiled;
    };
    /// Throws: what Compiler::compile throws.
    Lookup image(const Program& program);

    CacheStatistics statistics() const noexcept;
    /// Forgets every image in memory; images in use stay valid.
    void clear() noexcept;
    Compiler& compiler() noexcept { return *compiler_; }

    /// The one that kernels use unless told otherwise. Made at first use, never destroyed.
    static Cache& process_default();

  private:
    struct State;
    std::shared_ptr<Compiler> compiler_;
    std::unique_ptr<State> state_;
};

}  // namespace bascule
