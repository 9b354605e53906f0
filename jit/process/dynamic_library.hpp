// dlopen with an error that lists every path tried.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// A shared library opened by this object and never closed: CUDA's libraries do not survive unloading.
/// Thread-safe once made.
class DynamicLibrary {
  public:
    /// Opens the first of `candidates` (paths or sonames) that loads. `what` is for the message ("NVRTC"),
    /// `advice` is its last sentence. Throws: LibraryError with every candidate and the loader's own words.
    DynamicLibrary(const std::string& what, const std::vector<std::string>& candidates,
                   const std::string& advice);

    /// The symbol, or null.
    void* find(const char* symbol) const noexcept;
    /// The symbol. Throws: LibraryError with `message`, in which the path stands for the first {} and the symbol for the
    /// second.
    void* require(const char* symbol, const char* message) const;
    /// The file that was loaded, as the dynamic linker resolved it.
    const std::string& path() const noexcept { return path_; }

  private:
    void* handle_ = nullptr;
    std::string what_, path_;
};

}  // namespace bascule
