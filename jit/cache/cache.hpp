// Compiles each program once: memory over disk over compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <bascule/jit/cache/cache_sweep.hpp>
#include <bascule/jit/cache/origin.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

class DiskCache;
struct CacheState;  // cache_state.hpp

/// Counts since the process started.
struct CacheStatistics {
    std::uint64_t compiled = 0;  ///< programs whose image was compiled
    std::uint64_t from_memory = 0;
    std::uint64_t from_disk = 0;
    std::uint64_t nvrtc_calls = 0;  ///< of nvrtcCompileProgram
};

/// Images by program, from memory, from disk, or from the compiler. Concurrent requests for one program compile it once:
/// the others wait and share the outcome, a failure too; failures are not kept. A header that is edited, put back, or
/// begins to shadow another is noticed. Thread-safe; no lock is held while compiling or over file calls.
class Cache {
  public:
    /// Gets one sentence when the directory cannot be used; called without a lock, by the thread that
    /// compiles.
    using WarningHandler = std::function<void(const std::string&)>;

    /// `toolkit`: where to look for NVRTC at the first compile. `directory`: of the images on disk; empty: memory alone.
    /// The limit is 1 GiB.
    explicit Cache(ToolkitLocation toolkit, CachePlace place = {}, CacheLimit limit = {});
    ~Cache();

    /// The library that compiles, loaded now if it was not yet. Throws: LibraryError.
    std::shared_ptr<const Nvrtc> nvrtc();
    /// Looks for it elsewhere from the next compile on; what is loaded already stays loaded.
    void set_toolkit(ToolkitLocation toolkit);
    /// What will load the code, which decides between several NVRTCs from the next compile on.
    void set_driver_limit(const DriverLimit& limit);

    struct Lookup {
        std::shared_ptr<const Image> image;
        Origin origin = Origin::compiled;
        /// That it was made from; null: none.
        std::shared_ptr<const HeaderManifest> headers{};
        /// False: what the program reads is not proven, or something of it changed during the compile.
        bool headers_known = true;
    };
    /// An architecture that is not named by the options and that NVRTC does not know yet becomes the newest one that it
    /// does, in PTX alone. Throws: what `compile` throws; CompileInterrupted, where a watch is set
    /// (jit/process/compile_watch); Error where `program.headers` asks for headers that are not there any more and were
    /// not compiled before.
    Lookup image(const Program& program);

    /// From now on `observer` is called in place of each look-up of any cache, and calls find_or_compile. Thread-safe.
    using Observer = Lookup (*)(Cache& cache, const Program& program);
    static void set_observer(Observer observer) noexcept;
    /// What `image` does beside that.
    Lookup find_or_compile(const Program& program);

    CacheStatistics statistics() const noexcept;
    /// Forgets every image in memory; images in use stay valid, and those on disk stay there.
    void clear() noexcept;
    /// The images on disk.
    DiskCache& disk() noexcept;

    /// While one lives, every cache of the process compiles each program that it is asked for, in all threads, and
    /// keeps nothing.
    class Disabled {
      public:
        Disabled() noexcept;
        ~Disabled();
        Disabled(Disabled&&) = delete;
    };
    static bool is_disabled() noexcept;

    /// Who gets warnings from now on, instead of standard error.
    void set_warning_handler(WarningHandler handler);

    /// The one that kernels use unless told otherwise, with the directory that the environment names (see
    /// default_cache_place) and its limit (see default_cache_limit). Made at first use, never destroyed.
    static Cache& process_default();

  private:
    std::shared_ptr<CacheState> state_;  // also of a compile that goes on after its wait was interrupted
};

}  // namespace bascule
