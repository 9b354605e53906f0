// A directory for large temporary files of this process, which is removed however the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bascule {

/// Made with mode 0700 in TMPDIR, else in /dev/shm, else in /tmp. Owns the directory and everything in it: both are
/// removed with this object, and what a killed process left by the next one that makes such a directory. A forked
/// child removes nothing.
class ProcessDirectory {
  public:
    /// Null where `bytes` do not fit, or nothing can be written. Does not throw.
    static std::shared_ptr<const ProcessDirectory> make(std::uint64_t bytes);
    ~ProcessDirectory();
    ProcessDirectory(ProcessDirectory&&) = delete;

    const std::string& path() const noexcept { return path_; }

  private:
    ProcessDirectory(std::string path, int lock);

    std::string path_;
    int lock_;  // on the directory, as long as the process lives: others know by it that it is in use
    std::uint64_t fork_generation_;
};

}  // namespace bascule
