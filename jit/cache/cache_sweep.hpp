// The bound of the disk cache: what was not used for longest goes first, and what killed processes left goes too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <bascule/jit/cache/cache_directory.hpp>
#include <bascule/jit/files/digest.hpp>

namespace bascule {

/// How many bytes the entries of a directory may have together. A sweep, not each store, sees to that.
struct CacheLimit {
    static constexpr std::uint64_t unlimited = UINT64_MAX;

    std::uint64_t bytes = std::uint64_t{1} << 30;
    std::string problem{};  ///< one sentence for people when what the environment says is not understood
};

/// BASCULE_CACHE_LIMIT: a size as parse_byte_size reads it, or "unlimited"; 1 GiB without it.
CacheLimit default_cache_limit();

/// The file of a key's header state: 32 hexadecimal digits, a dot, and the state's place, 0 to 7.
std::string entry_name(const Digest& key, int place);
bool is_entry_name(std::string_view name);
/// The file that is locked while one process makes a key's entry.
std::string lock_name(const Digest& key);

/// Whether a file's time is an hour or more away, before or after `now_ns`. A clock that jumped makes files of the
/// future: whatever has been said of them is said anew, and what they say of themselves is not believed.
bool is_outdated(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;
/// When a file was used last, for comparisons: a time an hour or more ahead counts as the oldest.
std::int64_t last_use_ns(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;

/// Files that were removed.
struct Removed {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  ///< of the entries
    /// One sentence about the first thing that went wrong; what could be removed is removed all the same.
    std::optional<std::string> problem{};
};

/// Removes entries, least recently used first, until the others have at most `limit_bytes`; and temporary files and
/// locks that no process has touched for an hour. Other files are left alone. Other processes may sweep, read and store
/// at the same time: what one of them misses then costs a compile.
Removed sweep(const CacheDirectory& directory, std::uint64_t limit_bytes);

/// The same when no process has done so within the last hour; a file in the directory has that time.
void sweep_if_due(const CacheDirectory& directory, std::uint64_t limit_bytes);

}  // namespace bascule
