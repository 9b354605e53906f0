// Limits the size of the disk cache: removes the least recently used entries, and files that killed processes left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/lookup/cache_directory.hpp>
#include <bascule/jit/options/cache_settings.hpp>

namespace bascule {

/// Reads BASCULE_CACHE_LIMIT: a size as in parse_byte_size, or "unlimited"; the default is 1 GiB.
CacheLimit default_cache_limit();

/// The file name of an entry: 32 hexadecimal digits of the key, a dot, and the place of the header state.
std::string entry_name(const Digest& key, int place);
bool is_entry_name(std::string_view name);
/// The file that a process locks while it makes the entry of a key.
std::string lock_name(const Digest& key);

/// Whether a file's time is an hour or more before or after `now_ns`. A time in the future comes from a clock that
/// jumped; it is not trusted, and the file is stamped again.
bool is_outdated(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;
/// The time of a file's last use, for comparisons: a time an hour or more in the future counts as the oldest.
std::int64_t last_use_ns(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;

/// What a sweep removed: counts, not names.
struct Removed {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  ///< of the entries
    /// One sentence about the first failure. The sweep still removes everything else that it can.
    std::optional<std::string> problem{};
};

/// Removes the least recently used entries until the others have at most `limit_bytes`, and temporary files and locks
/// that no process has touched for an hour. Leaves other files alone. Other processes may sweep, read and store at the
/// same time; an entry that one of them then misses costs a compile.
Removed sweep(const CacheDirectory& directory, std::uint64_t limit_bytes);

/// Sweeps unless a process has swept within the last hour. The time of a file in the directory records that.
void sweep_if_due(const CacheDirectory& directory, std::uint64_t limit_bytes);

}  // namespace bascule
