#include <algorithm>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

/// Refuses priorities that the driver would silently clamp, which would hide a mistake.
void check_priority(Device device, int priority) {
    if (priority == 0) return;
    const PriorityRange range = priorities_of(device);
    if (priority >= range.most_urgent && priority <= range.least_urgent) return;
    reject(ErrorKind::value, {.field = "priority", .got = std::to_string(priority)},
           "`priority` is {}, and streams of device {} have priorities from {} (the least urgent) to {} "
           "(the most urgent).",
           priority, device.ordinal(), range.least_urgent, range.most_urgent);
}

/// Destroys a CUDA stream when its last user releases it.
class OwnedStream {
  public:
    OwnedStream(CUstream native, Device device) noexcept : native_(native), device_(device) {}
    ~OwnedStream();
    OwnedStream(OwnedStream&&) = delete;

    Device device() const noexcept { return device_; }

  private:
    CUstream native_;
    Device device_;
};

/// Existing streams by handle.
struct OwnedStreams {
    std::mutex mutex;
    std::unordered_map<CUstream, std::weak_ptr<OwnedStream>> all;
};

OwnedStreams& owned_streams() { return never_destroyed<OwnedStreams>(); }  // used by destructors at exit

OwnedStream::~OwnedStream() {
    if (Driver::lost_by_fork()) return;
    const ProgramLockReleased released;
    {
        const std::lock_guard lock(owned_streams().mutex);
        owned_streams().all.erase(native_);
    }
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuStreamDestroy(native_), "destroying a stream");
}

struct HiddenStreams {
    std::mutex mutex;
    std::vector<StreamRef> streams;
    std::atomic<std::size_t> count{0};  // number of streams; read without the lock
};

HiddenStreams& hidden_streams() { return never_destroyed<HiddenStreams>(); }  // used by destructors at exit

}  // namespace

std::shared_ptr<void> owner_of(StreamRef stream) {
    if (stream.handle() <= 2) return nullptr;
    const std::lock_guard lock(owned_streams().mutex);
    const auto found = owned_streams().all.find(stream.native());
    return found == owned_streams().all.end() ? nullptr : found->second.lock();
}

std::vector<LivingStream> living_streams() {
    std::vector<LivingStream> found;
    const std::lock_guard lock(owned_streams().mutex);
    for (const auto& [native, weak] : owned_streams().all) {
        std::shared_ptr<OwnedStream> owner = weak.lock();
        if (owner == nullptr) continue;
        const StreamRef stream(reinterpret_cast<std::uint64_t>(native), owner->device());
        found.push_back({stream, std::move(owner)});  // released by the caller, without the lock
    }
    return found;
}

Stream::Stream(Device device, int priority) : device_(device) {
    const Driver& driver = Driver::get();
    check_priority(device, priority);
    const ContextGuard context(device.context());
    CUstream native = nullptr;
    driver.check(driver.api().cuStreamCreateWithPriority(&native, CU_STREAM_NON_BLOCKING, priority),
                 "making a stream");
    auto owned = std::make_shared<OwnedStream>(native, device);
    {
        const std::lock_guard lock(owned_streams().mutex);
        owned_streams().all[native] = owned;
    }
    owner_ = std::move(owned);
    handle_ = reinterpret_cast<std::uint64_t>(native);
}

Stream::~Stream() {
    if (handle_ == 0) return;
    const ProgramLockReleased released;
    tell_observers<&StreamObserver::stream_ends>(*this);
    give_out_handle(*this);
}

void Stream::wait(StreamRef other) const {
    if (other == ref()) return;
    const Event event(other.device());
    event.ref().record(other);
    ref().wait(event.ref());
}

Stream::Stream(Stream&& other) noexcept
    : handle_(std::exchange(other.handle_, 0)), device_(other.device_), owner_(std::move(other.owner_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    std::swap(owner_, other.owner_);
    return *this;
}

PriorityRange priorities_of(Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    PriorityRange range;
    driver.check(driver.api().cuCtxGetStreamPriorityRange(&range.least_urgent, &range.most_urgent),
                 "asking which priorities streams can have");
    return range;
}

int priority_of(StreamRef stream) {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    int priority = 0;
    driver.check(driver.api().cuStreamGetPriority(stream.native(), &priority), stream.native(),
                 "asking which priority work has");
    return priority;
}

void require_primary_defaults(CUctx_st* current) {
    if (current == nullptr || Device::of_primary(current)) return;
    reject_field(ErrorKind::value, "stream",
                 "`stream` names a default stream (1 or 2) of the current context, which is not its "
                 "device's primary one (it may be a green context): Bascule's kernels would not wait for "
                 "that stream. Name a stream that was created in the primary context, or synchronize and "
                 "pass stream=None. {}",
                 primary_context_advice);
}

void require_primary_defaults() {
    const Driver& driver = Driver::get();
    CUcontext current = nullptr;
    driver.check(driver.api().cuCtxGetCurrent(&current), "asking for the current context");
    require_primary_defaults(current);
}

Device device_of_stream(std::uint64_t handle, Device assumed) {
    if (handle <= 2) {
        require_primary_defaults();
        return assumed;
    }
    const Driver& driver = Driver::get();
    CUcontext context = nullptr;
    driver.check(driver.api().cuStreamGetCtx(reinterpret_cast<CUstream>(handle), &context),
                 fmt::format("asking which device {} belongs to", doubtful_name_of_stream(handle)));
    if (assumed.in_use() && assumed.context() == context) return assumed;
    if (const auto device = Device::of_primary(context)) return *device;
    reject(ErrorKind::value, {.field = "stream", .got = fmt::format("{:#x}", handle)},
           "{} belongs to a context that is not its device's primary one: kernels there do not reach "
           "Bascule's memory. {}",
           name_of_stream(handle), primary_context_advice);
}

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
