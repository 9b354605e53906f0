#include <atomic>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {
namespace {

std::atomic<DefaultStream> default_kind{DefaultStream::legacy};

}  // namespace

void set_default_stream(DefaultStream which) noexcept {
    default_kind.store(which, std::memory_order_relaxed);
}
DefaultStream default_stream_kind() noexcept { return default_kind.load(std::memory_order_relaxed); }

void StreamRef::wait(EventRef event) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    driver.check(driver.api().cuStreamWaitEvent(native(), event.native(), CU_EVENT_WAIT_DEFAULT), native(),
                 "waiting for an event");
}

void EventRef::record(StreamRef stream) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    driver.check(driver.api().cuEventRecord(native_, stream.native()), stream.native(), "recording an event");
}

}  // namespace bascule
