// The headers that a compile reached, and the places where one would have been taken instead: an edit of
// either must never be missed by a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/headers/path_components.hpp>

namespace bascule {

/// A header as it was read.
struct TrackedFile {
    std::string path;
    FileIdentity identity;
    Digest digest;

    bool operator==(const TrackedFile&) const = default;
};

/// A path of which only the kind counts: where a header was looked for and not found, or only probed for.
struct TrackedPlace {
    std::string path;
    PlaceKind kind = PlaceKind::missing;

    bool operator==(const TrackedPlace&) const = default;
};

/// Some headers and places, and when they were looked at.
struct TrackedHeaders {
    std::int64_t taken_ns = 0;  ///< before the first look
    std::vector<TrackedFile> files;
    std::vector<TrackedPlace> places;

    bool empty() const noexcept { return files.empty() && places.empty(); }

    /// Whether a compile now would read the same: one stat each. A file is read again only when it is another
    /// than it was, or so young that it may have changed within one tick of its clock.
    bool hold() const;
    /// Whether nothing was touched since: as `hold`, but the same content in a new file is a change. For the
    /// time of a compile, in which a file may have been changed and changed back.
    bool untouched() const;
    /// The first file or place for which `hold` is false; empty where it is another file for two names.
    std::string difference() const;

    std::string to_bytes() const;
    static std::optional<TrackedHeaders> from_bytes(std::string_view bytes);

    bool operator==(const TrackedHeaders&) const = default;
};

/// Everything outside the key that decides what a program's headers are.
struct HeaderManifest {
    std::string directory;          ///< of the source, made absolute; empty for a string
    std::string working_directory;  ///< empty unless a relative place was looked at
    TrackedHeaders user;  ///< and the places where a header would be taken from a toolkit's directories
    /// Hundreds of files for some programs, of which most processes see one state: kept as bytes and compared
    /// by their digest with what this process has verified before.
    std::string toolkit;
    Digest toolkit_digest;
    /// To all of these; only in the process and for the compile that the manifest is made for.
    PathComponents way;

    /// Without headers neither a directory nor anything in it counts.
    bool empty() const noexcept { return user.empty() && toolkit.empty(); }

    /// Whether a compile of the program from `source_directory`, here and now, would read the same headers.
    bool holds(const std::string& source_directory) const;
    /// Whether the compile that has just ended cannot have read others.
    bool untouched() const;
    /// Whether both say the same headers, by their content, wherever and whenever they were looked at.
    bool is_equivalent(const HeaderManifest& other) const;
    /// The first thing that makes `holds` false, as a sentence without its end; for people.
    std::string difference(const std::string& source_directory) const;

    std::string to_bytes() const;
    static std::optional<HeaderManifest> from_bytes(std::string_view bytes);
    static std::string format();  ///< of these bytes; for a digest
};

/// Which headers an image may have been made from.
struct WantedHeaders {
    std::string source_directory;                   ///< of the program that asks
    std::shared_ptr<const HeaderManifest> given{};  ///< equivalent ones alone; null: those of here and now

    bool accept(const HeaderManifest& made_from) const {
        return given == nullptr ? made_from.holds(source_directory) : made_from.is_equivalent(*given);
    }
};

}  // namespace bascule
