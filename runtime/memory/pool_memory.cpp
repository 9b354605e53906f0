#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/memory/pool_memory.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {
namespace {

/// Waits for all known streams and releases what was kept for their work. Invalidates no capture. Throws: WaitInterrupted.
void wait_for_streams(Device device) {
    wait_and_release_kept(device);
    std::vector<StreamRef> streams{StreamRef::legacy_default(device)};
    const std::vector<LivingStream> living = living_streams();
    for (const LivingStream& each : living) {
        if (each.stream.device() == device) streams.push_back(each.stream);
    }
    for (const StreamRef stream : streams) {
        if (!is_capturing(stream)) wait_as_bookkeeping(*Driver::existing(), "memory that is in use", stream);
    }
}

/// For each stream, the mark up to which the host has waited. Entries of other libraries' streams are never removed.
struct WaitedFor {
    std::mutex mutex;
    std::map<std::pair<int, std::uint64_t>, KeptMark> marks;  // by device and handle; 0: the device
};
WaitedFor& waited_for() { return never_destroyed<WaitedFor>(); }

void note_waited(int device, std::uint64_t handle, KeptMark mark) noexcept {
    try {
        const std::lock_guard lock(waited_for().mutex);
        KeptMark& known = waited_for().marks[{device, handle}];
        known = std::max(known, mark);
    } catch (...) {  // out of memory: the stream will be waited for again
    }
}

bool was_waited_for(StreamRef stream, KeptMark mark) {
    const int device = stream.device().ordinal();
    const std::lock_guard lock(waited_for().mutex);
    const auto passed = [&](std::uint64_t handle) {
        const auto found = waited_for().marks.find({device, handle});
        return found != waited_for().marks.end() && found->second >= mark;
    };
    return passed(0) || passed(stream.handle());
}

constexpr StreamObserver waits_observer{
    .stream_finished = [](StreamRef stream, KeptMark mark,
                          bool) noexcept { note_waited(stream.device().ordinal(), stream.handle(), mark); },
    .device_finished = [](Device device, KeptMark mark,
                          bool) noexcept { note_waited(device.ordinal(), 0, mark); },
    .stream_ends =
        [](StreamRef stream) noexcept {
            const std::lock_guard lock(waited_for().mutex);
            waited_for().marks.erase({stream.device().ordinal(), stream.handle()});
        },
};

}  // namespace

PoolMemory::PoolMemory(MemoryPool& pool, std::size_t bytes, StreamRef stream, bool stream_lives)
    : OwnedMemory(0, bytes, stream.device()),
      pool_(pool),
      stream_(stream),
      stream_owner_(owner_of(stream)),
      thread_(number_of_this_thread()),
      in_order_((stream_lives || stream.handle() == 1 || stream_owner_ != nullptr) && stream.handle() != 2 &&
                !is_capturing(stream)) {
    const DriverResult code = try_to_allocate(
        device_, [&] { return pool.allocate(address_, bytes, in_order_ ? stream.native() : nullptr); });
    if (code != CUDA_SUCCESS) fail_allocation(code, bytes, "device", device_);
    if (!in_order_) {
        share();  // another thread sees this thread's default stream as a blocking stream
        return;
    }
    made_ = next_mark();
    note_several_places(thread_memory);
    set_stream_observer(ObservingPart::memory, waits_observer);
}

std::shared_ptr<OwnedMemory> PoolMemory::allocate(std::size_t bytes, StreamRef stream, bool stream_lives) {
    MemoryPool* const pool = MemoryPool::of(stream.device());
    if (pool == nullptr) return nullptr;
    const ContextGuard context(stream.context());
    return owned(new PoolMemory(*pool, bytes, stream, stream_lives));
}

PoolMemory::~PoolMemory() {
    forget_pointer(address_, bytes_);
    const StreamRef* const in_order = order();
    // Markers have shown that the memory is unused. The race detection has to be told.
    const EmulatedFunctions* const emulated = Driver::existing()->emulated_functions();
    if (emulated != nullptr && (was_shared() || allocation_is_done_)) emulated->unused(address_);
    Driver::existing()->report(
        pool_.free(address_, bytes_, in_order == nullptr ? nullptr : in_order->native()), "freeing memory");
}

const StreamRef* PoolMemory::order() const noexcept {
    const bool own_default = stream_.handle() == 2 && thread_ == number_of_this_thread();
    return in_order_ || own_default ? &stream_ : nullptr;
}

void PoolMemory::wait_for_allocation() {
    if (allocation_is_done_.load(std::memory_order_acquire)) return;
    const Driver& driver = Driver::get();
    const ContextGuard context(stream_.context());
    const EmulatedFunctions* const emulated = driver.emulated_functions();
    if (!was_waited_for(stream_, made_)) wait_for_allocation(driver);
    if (emulated != nullptr) emulated->allocated(address_);
    allocation_is_done_.store(true, std::memory_order_release);
}

void PoolMemory::wait_for_allocation(const Driver& driver) const {
    if (is_capturing(stream_)) {
        driver.fail_as(
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            fmt::format(
                "the array is used without the order of {}, on which it was allocated and which is being captured "
                "into a graph, so that nothing tells whether its memory is there. Wait for the stream after making "
                "the array, before the capture. The capture goes on.",
                name_of_stream(stream_.handle())),
            "waiting for the allocation of an array");
    }
    // The program may rely on this wait for the allocation only, so race detection must not count it as a wait for the
    // stream's other work.
    driver.check(wait_as_bookkeeping(driver, "the allocation of an array", stream_), stream_.native(),
                 "waiting for the allocation of an array");
}

DriverResult try_to_allocate(Device device, const std::function<DriverResult()>& allocate) {
    DriverResult code = allocate();
    const MemoryPool* const pool = MemoryPool::existing(device);
    const auto try_again = [&] {
        if (pool != nullptr) pool->trim(0);
        code = allocate();
    };
    if (code == CUDA_ERROR_OUT_OF_MEMORY && pool != nullptr) try_again();
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        wait_for_streams(device);
        try_again();
    }
    return code;
}

void trim_memory_pool(Device device, std::uint64_t keep) {
    synchronize(device);
    synchronize(device);  // memory that the first call released may be kept until the next
    if (const MemoryPool* pool = MemoryPool::existing(device)) pool->trim(keep);
}

void fail_allocation(const DriverResult& result, std::size_t bytes, const char* kind, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    std::string doing = fmt::format("allocating {} bytes of {} memory", bytes, kind);
    std::size_t available = 0;
    std::size_t total = 0;
    if (std::string_view(kind) == "device" && driver.api().cuMemGetInfo(&available, &total) == CUDA_SUCCESS) {
        doing += fmt::format(", of which {} of {} are free,", available, total);
    }
    driver.check(result, doing);
    std::abort();  // unreachable: `check` throws because `result` is an error
}

}  // namespace bascule
