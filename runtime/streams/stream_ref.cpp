#include <atomic>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {
namespace {

std::atomic<DefaultStream> default_kind{DefaultStream::legacy};

}  // namespace

void set_default_stream(DefaultStream which) noexcept {
    default_kind.store(which, std::memory_order_relaxed);
}
DefaultStream default_stream_kind() noexcept { return default_kind.load(std::memory_order_relaxed); }

}  // namespace bascule
