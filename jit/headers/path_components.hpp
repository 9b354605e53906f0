// Tracks the directories and links on the way to files, to notice that one was exchanged and put back.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace bascule {

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

}  // namespace bascule
