#include <cstdio>
#include <utility>

#include <bascule/jit/cache/cache_state.hpp>
#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {

CacheState::CacheState(ToolkitLocation location, CachePlace place, CacheLimit limit)
    : disk(
          std::move(place), [this](const std::string& text) { warn(text); }, std::move(limit)),
      toolkit(std::move(location)),
      handler([](const std::string& text) { std::fprintf(stderr, "bascule: %s\n", text.c_str()); }) {}

const char* to_string(Origin origin) noexcept {
    static constexpr const char* names[] = {"compiled", "memory", "disk"};
    return names[static_cast<std::size_t>(origin)];
}

void CacheState::warn(const std::string& text) {
    DiskCache::WarningHandler current;
    {
        const std::lock_guard lock(fork_safe_mutex());
        if (is_compile_thread()) return postponed.push_back(text);
        current = handler;
    }
    current(text);
}

void CacheState::warn_of_compile_threads() {
    std::vector<std::string> texts;
    {
        const std::lock_guard lock(fork_safe_mutex());
        texts.swap(postponed);
    }
    for (const std::string& text : texts) warn(text);
}

}  // namespace bascule
