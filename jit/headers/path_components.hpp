// The directories and links on the way to files: whether one was exchanged meanwhile, even if it was put back.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace bascule {

/// As they were when they were added. For the time of a compile: a change that was undone leaves times behind.
class PathComponents {
  public:
    /// Those of an absolute path, and of the links among them.
    void add(const std::string& path) { resolve("/", path, 0); }
    /// The same for a path where nothing is: also whether anything is made or removed where it would be.
    void add_missing(const std::string& path);

    bool untouched() const;

  private:
    struct Component {
        std::uint64_t device = 0, inode = 0;
        std::int64_t modified_ns = 0, changed_ns = 0;
        bool is_directory = false;
        bool is_shared = false;      ///< as /tmp is, where other users make files all the time
        bool entries_count = false;  ///< whether a change of the directory's entries is one

        bool operator==(const Component&) const = default;
    };

    static Component look_at(const std::string& path);
    /// Adds what lies between `directory`, which has no links in it, and what `path` leads to from there; returns that.
    std::string resolve(std::string directory, const std::string& path, int links);
    bool is_untouched(const std::string& path, const Component& then) const;

    std::map<std::string, Component> components_;     // by paths in which only the last part may be a link
    std::map<std::string, std::string> directories_;  // by absolute path, where they lead
};

}  // namespace bascule
