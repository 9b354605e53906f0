// The headers that a compile may have read, and the paths where another header would have been found first. The
// cache must notice a change of either.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <bascule/jit/files/file_identity.hpp>

namespace bascule {

/// A header with its identity and digest when it was read.
struct TrackedFile {
    std::string path;
    FileIdentity identity;
    Digest digest;

    bool operator==(const TrackedFile&) const = default;
};

/// A path where a header was searched and not found, or that __has_include probed. Only its kind matters.
struct TrackedPlace {
    std::string path;
    PlaceKind kind = PlaceKind::missing;

    bool operator==(const TrackedPlace&) const = default;
};

/// Headers and places, with the time at which they were read.
struct TrackedHeaders {
    std::int64_t taken_ns = 0;  ///< before the first was read
    std::vector<TrackedFile> files;
    std::vector<TrackedPlace> places;

    bool empty() const noexcept { return files.empty() && places.empty(); }

    /// Whether a compile now would read the same content. Takes one stat for each. A file is read again only if its
    /// identity differs, or if it is so new that it may have changed within one tick of the file system's clock.
    bool hold() const;
    /// Like `hold`, but a new file with the same content is a change. It is used after a compile, during which a
    /// file may have been changed and changed back.
    bool untouched() const;
    /// Describes the first file or place for which `hold` is false. Empty if only the aliases differ.
    std::string difference() const;

    std::string to_bytes() const;
    static std::optional<TrackedHeaders> from_bytes(std::string_view bytes);

    bool operator==(const TrackedHeaders&) const = default;
};

/// The state of paths when they were added. Times reveal a change that was undone during a compile.
class PathComponents {
  public:
    /// Adds the components of an absolute path, and of the targets of its links.
    void add(const std::string& path) { resolve("/", path, 0); }
    /// The same for a path where nothing exists. Also notices entries that are created or removed in its directory.
    void add_missing(const std::string& path);

    bool untouched() const;

  private:
    struct Component {
        std::uint64_t device = 0, inode = 0;
        std::int64_t modified_ns = 0, changed_ns = 0;
        bool is_directory = false;
        bool is_shared = false;      ///< like /tmp, where other users create files all the time
        bool entries_count = false;  ///< whether a new or removed entry counts as a change

        bool operator==(const Component&) const = default;
    };

    static Component look_at(const std::string& path);
    /// Adds the components of `path`, which is relative to `directory`, and returns the path that it leads to without
    /// links. `directory` has no links.
    std::string resolve(std::string directory, const std::string& path, int links);
    bool is_untouched(const std::string& path, const Component& then) const;

    std::map<std::string, Component> components_;     // by paths in which only the last part may be a link
    std::map<std::string, std::string> directories_;  // the path without links, by absolute path
};

/// Everything outside the key that determines a program's headers.
struct HeaderManifest {
    std::string directory;          ///< of the source, made absolute; empty for a string
    std::string working_directory;  ///< empty unless a relative path was searched
    TrackedHeaders user;  ///< the user's headers, and all places, those in a toolkit's directories too
    /// The toolkit's headers. Some programs have hundreds, and they rarely change while a process runs. They are kept
    /// as bytes, whose digest tells whether this process has verified them before.
    std::string toolkit;
    Digest toolkit_digest;
    /// The directories and links on the way to all headers and places. Not stored; used only during the compile.
    PathComponents way;

    /// If true, the program reads no headers and `holds` is true in every directory.
    bool empty() const noexcept { return user.empty() && toolkit.empty(); }

    /// Whether a compile of the program from `source_directory` would read the same headers now.
    bool holds(const std::string& source_directory) const;
    /// Whether the compile that has just ended cannot have read other headers.
    bool untouched() const;
    /// Whether both have the same headers and places, with the same content at the same paths. Neither the time of
    /// the scan matters nor which headers count as the toolkit's.
    bool is_equivalent(const HeaderManifest& other) const;
    /// The first reason why `holds` is false, as a clause for messages.
    std::string difference(const std::string& source_directory) const;

    std::string to_bytes() const;
    static std::optional<HeaderManifest> from_bytes(std::string_view bytes);
    static std::string format();  ///< describes the format of these bytes, for a digest
};

/// The condition that the headers of an image must meet.
struct WantedHeaders {
    std::string source_directory;  ///< of the requesting program
    std::shared_ptr<const HeaderManifest>
        given{};  ///< the image's headers must equal these; null: they must hold now

    bool accept(const HeaderManifest& made_from) const {
        return given == nullptr ? made_from.holds(source_directory) : made_from.is_equivalent(*given);
    }
};

}  // namespace bascule
