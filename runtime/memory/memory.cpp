// Memory by kind, and copies that are ordered like launches.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/memory/pool_memory.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/ordered_call.hpp>

namespace bascule {
namespace {

void enqueue_copy(StreamRef stream, std::uint64_t destination, const void* source, std::size_t bytes,
                  std::span<const Producer> producers, bool waits = false) {
    enqueue_in_order(CallKind::copy_to_device, bytes, stream, producers, "copying to the device",
                     [&](const DriverFunctions& api) {
                         if (waits) stream.finish_before_blocking_call("a copy to the device");
                         return api.cuMemcpyHtoDAsync(destination, source, bytes, stream.native());
                     });
}

/// The functions that allocate and free one kind.
struct Method {
    const char* memory;  // for messages
    DriverResult (*allocate)(const DriverFunctions& api, CUdeviceptr& address, std::size_t bytes);
    DriverResult (*free)(const DriverFunctions& api, CUdeviceptr address, void* host);
};

DriverResult free_device(const DriverFunctions& api, CUdeviceptr address, void*) {
    return api.cuMemFree(address);
}

constexpr Method methods[] = {
    {"device",
     [](const DriverFunctions& api, CUdeviceptr& address, std::size_t bytes) {
         return api.cuMemAlloc(&address, bytes);
     },
     &free_device},
    {"pinned",
     [](const DriverFunctions& api, CUdeviceptr& address, std::size_t bytes) {
         void* host = nullptr;
         const DriverResult code =
             api.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
         address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host));
         return code;
     },
     [](const DriverFunctions& api, CUdeviceptr, void* host) { return api.cuMemFreeHost(host); }},
    {"managed",
     [](const DriverFunctions& api, CUdeviceptr& address, std::size_t bytes) {
         return api.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);
     },
     &free_device},
};

const Method& method_of(MemoryKind kind) noexcept { return methods[static_cast<std::size_t>(kind)]; }

/// The host address of a device address, or the reverse. They are the same on most machines.
template <class Address>
Address other_side(const Driver& driver, CUpointer_attribute attribute, CUdeviceptr address) {
    Address found{};
    driver.check(driver.ask_pointer(address, attribute, &found), "asking for the address of new memory");
    return found;
}

/// Memory from the driver that is freed without stream order.
class DriverMemory final : public OwnedMemory {
  public:
    /// The device's context must be current. Throws: CudaError.
    DriverMemory(std::size_t bytes, Device device, MemoryKind kind)
        : OwnedMemory(0, bytes, device), method_(method_of(kind)) {
        const Driver& driver = Driver::get();
        CUdeviceptr made = 0;
        const DriverResult code =
            try_to_allocate(device, [&] { return method_.allocate(driver.api(), made, bytes); });
        if (code != CUDA_SUCCESS) fail_allocation(code, bytes, method_.memory, device);
        address_ = made;
        host_ = reinterpret_cast<void*>(made);
    }
    ~DriverMemory() override {
        forget_pointer(address_, bytes_);
        const Driver& driver = *Driver::existing();
        driver.report(method_.free(driver.api(), address_, host_), "freeing memory");
    }

  private:
    const Method& method_;
    void* host_;  // for pinned memory
};

// --- Pinned memory that holds copied values until the device has read them. Pinning costs more than most copies, so buffers
// of a few sizes are reused.

/// Longer copies are not staged: waiting for them takes no longer than copying twice.
constexpr std::size_t most_staged_bytes = std::size_t{1} << 20;

/// This much pinned memory is kept for later copies when the device is synchronized.
constexpr std::size_t most_kept_staging_bytes = std::size_t{32} << 20;

constexpr std::array<std::size_t, 4> sizes = {std::size_t{16} << 10, std::size_t{64} << 10,
                                              std::size_t{256} << 10, most_staged_bytes};

/// A buffer counts as this many times its size towards `bytes_a_marker`. So a marker follows every fourth buffer of the
/// largest size and soon reports that it can be reused. A GPU's driver takes 1.4 ms to allocate one.
constexpr std::size_t weight = 16;

struct Buffer {
    std::size_t size;  // index into `sizes`
    Device device;     // whose context it was made in
};

/// There are as many buffers as copies pending at once, which the owner queues limit. Waiting for a buffer instead would hang
/// a program whose kernel waits for something that the host does after the copies. Buffers beyond `most_kept_staging_bytes`
/// are freed when the device has been synchronized, because cuMemFreeHost waits for the device.
struct Pool {
    std::mutex mutex;
    std::array<std::vector<void*>, sizes.size()> free;  // has capacity for all buffers
    std::unordered_map<void*, Buffer> all;
    std::size_t bytes = 0;  // of all buffers
};

/// Never destroyed, because copies may be pending at exit.
Pool& pool() { return never_destroyed<Pool>(); }

/// Removes and returns a buffer that should be freed, or null.
void* take_surplus(Device device) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    if (known.bytes <= most_kept_staging_bytes) return nullptr;
    for (std::size_t size = sizes.size(); size-- > 0;) {  // largest first
        auto& free = known.free[size];
        const auto found = std::ranges::find_if(
            free, [&](void* buffer) { return known.all.find(buffer)->second.device == device; });
        if (found == free.end()) continue;
        void* const buffer = std::exchange(*found, free.back());
        free.pop_back();
        const auto entry = known.all.find(buffer);
        known.bytes -= sizes[entry->second.size];
        known.all.erase(entry);
        return buffer;
    }
    return nullptr;
}

void free_surplus(Device device, KeptMark, bool lost) noexcept {
    if (lost || Driver::lost_by_fork()) return;
    void* buffer = take_surplus(device);
    if (buffer == nullptr) return;
    end_in_context(device, [&](const Driver& driver) {
        for (; buffer != nullptr; buffer = take_surplus(device))
            driver.report(driver.api().cuMemFreeHost(buffer), "freeing pinned memory of a copy");
    });
}

constexpr StreamObserver staging_observer{.device_finished = &free_surplus};

void* make_buffer(Device device, std::size_t size) {
    set_stream_observer(ObservingPart::staging, staging_observer);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    void* buffer = nullptr;
    driver.check(driver.api().cuMemHostAlloc(&buffer, sizes[size], CU_MEMHOSTALLOC_PORTABLE),
                 "allocating pinned memory for a copy");
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    known.all.emplace(buffer, Buffer{size, device});
    known.bytes += sizes[size];
    known.free[size].reserve(known.all.size());  // so that returning a buffer allocates nothing
    return buffer;
}

void* take_buffer(Device device, std::size_t size) {
    {
        Pool& known = pool();
        const std::lock_guard lock(known.mutex);
        if (auto& free = known.free[size]; !free.empty()) {
            void* buffer = free.back();
            free.pop_back();
            return buffer;
        }
    }
    return make_buffer(device, size);
}

void recycle_buffers(void* const* buffers, std::size_t count) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    for (std::size_t i = 0; i < count; ++i)
        known.free[known.all.find(buffers[i])->second.size].push_back(buffers[i]);
}

/// Copies at most `most_staged_bytes` to pinned memory and returns its owner, whose `object` is the copy. Keep the
/// owner until the operation that reads the copy is done. Throws: CudaError if no pinned memory is available.
Owner stage(const void* source, std::size_t bytes, Device device) {
    const auto size = static_cast<std::size_t>(std::ranges::lower_bound(sizes, bytes) - sizes.begin());
    void* const buffer = take_buffer(device, size);
    std::memcpy(buffer, source, bytes);
    return {buffer, &recycle_buffers, sizes[size] * weight};
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes, Device device, MemoryKind kind)
    : bytes_(bytes), device_(device), kind_(kind) {
    if (bytes == 0) return;
    const ContextGuard context(device.context());
    take(OwnedMemory::owned(new DriverMemory(bytes, device, kind)));
    if (kind == MemoryKind::device) return;
    const Driver& driver = Driver::get();
    host_ = reinterpret_cast<void*>(address_);
    if (kind == MemoryKind::managed) {
        host_ = other_side<void*>(driver, CU_POINTER_ATTRIBUTE_HOST_POINTER, address_);
    } else {
        address_ = other_side<CUdeviceptr>(driver, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address_);
    }
}

DeviceBuffer::DeviceBuffer(std::size_t bytes, StreamRef stream, bool stream_lives)
    : bytes_(bytes), device_(stream.device()) {
    if (bytes == 0) return;
    if (auto made = PoolMemory::allocate(bytes, stream, stream_lives)) {
        take(std::move(made));
    } else {
        *this = DeviceBuffer(bytes, device_);
    }
}

void DeviceBuffer::take(std::shared_ptr<OwnedMemory> memory) noexcept {
    owned_ = memory.get();
    owner_ = std::move(memory);
    address_ = owned_->address();
    const StreamRef* const order = owned_->order();
    order_ = order == nullptr || order->handle() == 2 ? no_order : order->handle();
}

DeviceBuffer::DeviceBuffer(std::uint64_t address, std::size_t bytes, Device device,
                           std::shared_ptr<void> owner) noexcept
    : address_(address), bytes_(bytes), device_(device), owner_(std::move(owner)) {}

DeviceBuffer::~DeviceBuffer() {
    if (address_ != 0 && owned_ == nullptr) forget_pointer(address_, bytes_);
}

void DeviceBuffer::share() const noexcept {
    if (owned_ != nullptr) owned_->share();
}

void DeviceBuffer::wait_for_allocation() const {
    if (owned_ != nullptr) owned_->wait_for_allocation();
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept : device_(other.device_) {
    *this = std::move(other);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(kind_, other.kind_);
    std::swap(host_, other.host_);
    std::swap(owner_, other.owner_);
    std::swap(owned_, other.owned_);
    std::swap(order_, other.order_);
    return *this;
}

void copy_to_device(StreamRef stream, std::uint64_t destination, const void* source, std::size_t bytes,
                    std::span<const Producer> producers, const Owners& owners) {
    OwnersKept kept(stream, owners);
    if (bytes == 0) return;
    const ContextGuard context(stream.context());
    // A graph reads the source when it is launched. Pinned and managed memory is read in stream order. For pageable
    // memory the manual says only that the call "might be synchronous", and a device with pageable access reads it in
    // place. So the driver gets a staged copy, or the host waits.
    if (Driver::get().memory_type_of(source) != 0 ||
        capture_of(stream).status == CaptureState::Status::active) {
        return enqueue_copy(stream, destination, source, bytes, producers);
    }
    if (bytes <= most_staged_bytes) {
        const Owner copy = stage(source, bytes, stream.device());
        const Owners of_copy(copy);
        const OwnersKept copy_kept(stream, of_copy);
        Owners others = kept.transfer();
        others.operations = 0;  // so that the copy counts as one operation
        const OwnersKept others_kept(stream, others);
        return enqueue_copy(stream, destination, copy.object, bytes, producers);
    }
    enqueue_copy(stream, destination, source, bytes, producers, true);
    stream.synchronize();
    kept.finished();
}

bool copy_to_host(StreamRef stream, void* destination, std::uint64_t source, std::size_t bytes,
                  std::span<const Producer> producers, const Owners& owners) {
    OwnersKept kept(stream, owners);
    if (bytes == 0) return true;
    const ResetWatch resets;
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    const bool waits = driver.memory_type_of(destination) != CU_MEMORYTYPE_HOST;
    if (waits) require_no_capture(stream, "copying to memory that is not pinned");
    enqueue_in_order(CallKind::copy_to_host, bytes, stream, producers, "copying to the host",
                     [&](const DriverFunctions& api) {
                         if (waits) stream.finish_before_blocking_call("a copy to the host");
                         return api.cuMemcpyDtoHAsync(destination, source, bytes, stream.native());
                     });
    if (!waits) return false;
    // It depends on the driver's version whether pageable memory is filled when the call returns.
    stream.synchronize();
    resets.check("copying to the host");
    kept.finished();
    return true;
}

}  // namespace bascule
