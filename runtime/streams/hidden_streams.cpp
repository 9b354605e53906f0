#include <algorithm>
#include <mutex>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/hidden_streams.hpp>
#include <bascule/runtime/streams/observer.hpp>

namespace bascule {
namespace {

struct HiddenStreams {
    std::mutex mutex;
    std::vector<StreamRef> streams;
    std::atomic<std::size_t> count{0};  // number of streams; read without the lock
};

HiddenStreams& hidden_streams() { return never_destroyed<HiddenStreams>(); }  // used by destructors at exit

}  // namespace

void hide_stream(StreamRef stream) {
    HiddenStreams& hidden = hidden_streams();
    const std::lock_guard lock(hidden.mutex);
    hidden.streams.push_back(stream);
    hidden.count.store(hidden.streams.size(), std::memory_order_relaxed);
}

void give_out_handle(StreamRef stream) noexcept {
    // In a forked child, a thread that does not exist may hold the lock.
    if (stream.handle() <= 2 || Driver::lost_by_fork()) return;
    HiddenStreams& hidden = hidden_streams();
    if (hidden.count.load(std::memory_order_relaxed) == 0) return;
    {
        const std::lock_guard lock(hidden.mutex);
        if (std::erase(hidden.streams, stream) == 0) return;
        hidden.count.store(hidden.streams.size(), std::memory_order_relaxed);
    }
    streams_shown.fetch_add(1, std::memory_order_release);
    tell_observers<&StreamObserver::handle_given_out>(stream);
}

bool may_be_captured_by_others(StreamRef stream) noexcept {
    if (stream.handle() <= 2) return stream.handle() == 2;
    HiddenStreams& hidden = hidden_streams();
    const std::lock_guard lock(hidden.mutex);
    return std::find(hidden.streams.begin(), hidden.streams.end(), stream) == hidden.streams.end();
}

}  // namespace bascule
