#include <atomic>

#include <bascule/jit/cache.hpp>
#include <bascule/jit/cache_key.hpp>
#include <bascule/jit/memory_cache.hpp>
#include <bascule/jit/user_headers.hpp>

namespace bascule {

struct Cache::State {
    MemoryCache memory;
    std::atomic<std::uint64_t> compiled{0};
    std::atomic<std::uint64_t> from_memory{0};
};

const char* to_string(Origin origin) noexcept {
    switch (origin) {
        case Origin::compiled:
            return "compiled";
        case Origin::memory:
            return "memory";
        case Origin::disk:
            return "disk";
    }
    return "unknown";
}

Cache::Cache(std::shared_ptr<Compiler> compiler)
    : compiler_(std::move(compiler)), state_(std::make_unique<State>()) {}
Cache::~Cache() = default;

Cache::Lookup Cache::image(const Program& program) {
    const std::shared_ptr<const Nvrtc> nvrtc = compiler_->nvrtc();
    const auto compile = [&] {
        auto image = std::make_shared<const Image>(Compiler::compile(program, *nvrtc));
        state_->compiled.fetch_add(1, std::memory_order_relaxed);
        return image;
    };
    const auto user_headers = [&] {
        return scan_user_headers(program.source, program.options, nvrtc->include_paths());
    };
    const UserHeaders headers = user_headers();
    if (!headers.certain) return {compile(), Origin::compiled};

    const CacheKey key = key_of(program, *nvrtc, headers.state);
    MemoryCache::Outcome outcome = state_->memory.once(key, compile);
    // A header that was edited during the compile: the image may be of either text.
    const bool moved = outcome.made_here && user_headers().state != headers.state;
    if (moved) state_->memory.forget(key);
    if (outcome.made_here) return {std::move(outcome.image), Origin::compiled};
    state_->from_memory.fetch_add(1, std::memory_order_relaxed);
    return {std::move(outcome.image), Origin::memory};
}

CacheStatistics Cache::statistics() const noexcept {
    CacheStatistics statistics;
    statistics.compiled = state_->compiled.load(std::memory_order_relaxed);
    statistics.from_memory = state_->from_memory.load(std::memory_order_relaxed);
    statistics.nvrtc_calls = Nvrtc::compile_calls();
    return statistics;
}

void Cache::clear() noexcept { state_->memory.clear(); }

Cache& Cache::process_default() {
    static Cache& cache = *new Cache(std::make_shared<Compiler>());
    return cache;
}

}  // namespace bascule
