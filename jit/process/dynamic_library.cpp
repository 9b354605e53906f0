#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/dynamic_library.hpp>

namespace bascule {

DynamicLibrary::DynamicLibrary(const std::string& what, const std::vector<std::string>& candidates,
                               const std::string& advice)
    : what_(what) {
    std::string words = "no path was given";
    for (const std::string& candidate : candidates) {
        handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) {
            link_map* map = nullptr;
            const bool known = dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
            path_ = known ? map->l_name : candidate;
            return;
        }
        const char* error = dlerror();
        words = error == nullptr ? "no reason given" : error;
    }
    throw LibraryError(fmt::format("{} cannot be loaded. Tried: {}. The loader says: {}. {}", what,
                                   fmt::join(candidates, ", "), words, advice),
                       {.library = what, .paths_tried = candidates, .loader_message = words});
}

void* DynamicLibrary::find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

void* DynamicLibrary::require(const char* symbol, const char* message) const {
    if (void* const found = find(symbol)) return found;
    throw LibraryError(fmt::format(fmt::runtime(message), path_, symbol),
                       {.library = what_, .paths_tried = {path_}});
}

}  // namespace bascule
