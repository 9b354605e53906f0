// Compiles each program once: looks in memory, then on disk, and compiles only if both miss.
#pragma once

#include <functional>
#include <memory>

#include <bascule/jit/options/cache_settings.hpp>

namespace bascule {

struct Arch;
struct CompileOptions;
struct DriverLimit;
struct HeaderManifest;
struct Image;
class Nvrtc;
struct Program;
class DiskCache;
struct CacheState;  // cache.cpp

/// The origin of an image.
enum class Origin : std::uint8_t { compiled, memory, disk };

const char* to_string(Origin origin) noexcept;  ///< "compiled", "memory", "disk"

/// Counts since the process started.
struct CacheStatistics {
    std::uint64_t compiled = 0;  ///< programs whose image was compiled
    std::uint64_t from_memory = 0;
    std::uint64_t from_disk = 0;
    std::uint64_t nvrtc_calls = 0;  ///< of nvrtcCompileProgram
};

/// Images by program, from memory, from disk, or from the compiler. Concurrent requests for one program compile it
/// once: the others wait and share the result or the failure; failures are not kept. Notices if a header is edited, put
/// back, or begins to shadow another. Thread-safe; holds no mutex while it compiles or uses the cache directory.
class Cache {
  public:
    /// Receives a sentence when the directory cannot be used or the limit is not a size. Called without a lock, by the
    /// thread that asked for the image.
    using WarningHandler = std::function<void(const std::string&)>;

    /// `toolkit`: where to look for NVRTC at the first compile. `place`: the directory of images on disk; empty: memory
    /// only.
    explicit Cache(ToolkitLocation toolkit, CachePlace place = {}, CacheLimit limit = {});
    ~Cache();

    /// The library that compiles; loads it if necessary. Throws: LibraryError.
    std::shared_ptr<const Nvrtc> nvrtc();
    /// Looks for NVRTC elsewhere from the next compile on; a library that is loaded stays loaded.
    void set_toolkit(ToolkitLocation toolkit);
    /// The driver that will load the code; it decides between several NVRTCs from the next compile on.
    void set_driver_limit(const DriverLimit& limit);

    struct Lookup {
        std::shared_ptr<const Image> image;
        Origin origin = Origin::compiled;
        /// The headers that it was made from, or null.
        std::shared_ptr<const HeaderManifest> headers{};
        /// False if the headers are not known for certain, or one of them changed during the compile.
        bool headers_known = true;
    };
    /// The architecture that code is compiled for: the one that the options name, else the device's own target
    /// (Nvrtc::own_target) or, if the code is to be linked, Nvrtc::nearest, because the code that it is linked with
    /// may have no own target. Throws: LibraryError.
    Arch target(const CompileOptions& options, Arch device);
    /// The image of a program, compiled for `target` if the options name no architecture. Throws: what `compile` throws;
    /// CompileInterrupted, if a watch is set (jit/process/compile_thread); Error if `program.headers` asks for headers
    /// that are no longer there and were not compiled before.
    Lookup image(const Program& program);

    /// From now on `observer` is called in place of each look-up of all caches; it calls look_up. Thread-safe.
    using Observer = Lookup (*)(Cache& cache, const Program& program);
    static void set_observer(Observer observer) noexcept;
    /// `image` without the observer.
    Lookup look_up(const Program& program);

    CacheStatistics statistics() const noexcept;
    /// Removes all images from memory; images in use stay valid, and those on disk remain.
    void clear() noexcept;
    /// The images on disk.
    DiskCache& disk() noexcept;

    /// While such an object lives, the caches of the process compile all programs, in all threads, and keep nothing.
    class Disabled {
      public:
        Disabled() noexcept;
        ~Disabled();
        Disabled(Disabled&&) = delete;
    };
    static bool is_disabled() noexcept;

    /// Sets the function that gets warnings in place of stderr.
    void set_warning_handler(WarningHandler handler);

    /// The cache that kernels use by default. The environment sets its directory and its limit (default_cache_place,
    /// default_cache_limit). Made at first use, never destroyed.
    static Cache& process_default();

  private:
    std::shared_ptr<CacheState> state_;  // shared with compiles that go on after their wait was interrupted
};

}  // namespace bascule
