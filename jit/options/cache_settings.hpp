// What a cache is made with: the places of NVRTC and of the images, and how many bytes the images may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bascule {

/// The places of NVRTC and the CUDA headers. The layer that knows the installation fills it in (Python: from the wheels).
struct ToolkitLocation {
    /// Paths or sonames; the driver decides between them (jit/compile/nvrtc_search.hpp). If empty, in this order: CUDA_HOME and
    /// CUDA_PATH, the active environment (VIRTUAL_ENV, CONDA_PREFIX), the program's own directories and those of its
    /// RUNPATH (for a Python package, the wheels in the same site-packages), /usr/local/cuda, the loader's search path.
    std::vector<std::string> nvrtc_libraries;
    /// Directories of cuda_fp16.h and CCCL. If empty: those next to the loaded library, then those of a toolkit of
    /// exactly its version.
    std::vector<std::string> include_paths;
    /// Whether those are of an installed toolkit or wheel; files of directories that a user named may be edited.
    bool found_include_paths = false;

    bool operator==(const ToolkitLocation&) const = default;
};

/// The directory in which compiled programs are kept.
struct CachePlace {
    CachePlace(std::string of_path = {}, std::string why_not = {})  // NOLINT(google-explicit-constructor)
        : path(std::move(of_path)), problem(std::move(why_not)) {}
    /// The path; empty if the user wants nothing to be kept, or without a home directory.
    std::string path;
    std::string problem;  ///< why nothing may be kept there; empty if it may
};

/// The most bytes that all entries of a directory together may have. Sweeps enforce it, not each store.
struct CacheLimit {
    static constexpr std::uint64_t unlimited = UINT64_MAX;
    static constexpr std::uint64_t default_bytes = std::uint64_t{1} << 30;

    std::uint64_t bytes = default_bytes;
    std::string problem{};  ///< a sentence for users if the environment variable is not understood
};

/// Reads BASCULE_CACHE_LIMIT: a size as in parse_byte_size, or "unlimited"; the default is 1 GiB.
CacheLimit default_cache_limit();

/// Parses a number without a sign and a unit: B or nothing, kB, MB, GB and TB (powers of 1000), KiB, MiB, GiB and TiB
/// (powers of 1024). Case does not matter, and a space may precede the unit. Returns nothing for other text, and for
/// 2^63 bytes or more.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace bascule
