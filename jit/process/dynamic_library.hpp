// Opens shared libraries; the error lists all paths that were tried.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// A shared library that this object opens and never closes, because CUDA's libraries do not support unloading.
/// Thread-safe once made.
class DynamicLibrary {
  public:
    /// Opens the first of `candidates` (paths or sonames) that loads. `what` names the library in the message
    /// ("NVRTC"), `advice` is its last sentence. Throws: LibraryError with all candidates and the loader's messages.
    DynamicLibrary(const std::string& what, const std::vector<std::string>& candidates,
                   const std::string& advice);

    /// The symbol, or null.
    void* find(const char* symbol) const noexcept;
    /// The symbol. Throws: LibraryError with `message`, whose first {} is replaced by the path and the second by the symbol.
    void* require(const char* symbol, const char* message) const;
    /// The path of the loaded file, as resolved by the dynamic linker.
    const std::string& path() const noexcept { return path_; }

  private:
    void* handle_ = nullptr;
    std::string what_, path_;
};

}  // namespace bascule
