// A directory for large temporary files of this process, which is removed even if the process is killed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bascule {

/// Made with mode 0700 in TMPDIR, or else in /dev/shm or /tmp. Owns the directory and its contents and removes them. If
/// a process was killed, the next one that makes such a directory removes its files. A forked child removes nothing.
class ProcessDirectory {
  public:
    /// Returns null if `bytes` do not fit, or nothing can be written. Does not throw.
    static std::shared_ptr<const ProcessDirectory> make(std::uint64_t bytes);
    ~ProcessDirectory();
    ProcessDirectory(ProcessDirectory&&) = delete;

    const std::string& path() const noexcept { return path_; }

  private:
    ProcessDirectory(std::string path, int lock);

    std::string path_;
    int lock_;  // held as long as the process lives: it shows others that the directory is in use
    std::uint64_t fork_generation_;
};

}  // namespace bascule
