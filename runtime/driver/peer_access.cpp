// Peer access belongs to a pair of contexts and stays enabled until the process ends: other libraries may have enabled
// it too, so Bascule cannot know when it is no longer needed.
#include <array>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/driver/peer_access.hpp>

namespace bascule {
namespace {

/// One bit per peer, for each device.
std::array<std::atomic<std::uint64_t>, max_devices> enabled{};

}  // namespace

void enable_peer_access(Device device, Device peer) {
    if (device == peer) return;
    std::atomic<std::uint64_t>& peers = enabled[static_cast<std::size_t>(device.ordinal())];
    const std::uint64_t bit = std::uint64_t{1} << peer.ordinal();
    if ((peers.load(std::memory_order_acquire) & bit) != 0) return;
    const Driver& driver = Driver::get();
    CUdevice from = 0, to = 0;
    driver.check(driver.api().cuDeviceGet(&from, device.ordinal()), "finding a device");
    driver.check(driver.api().cuDeviceGet(&to, peer.ordinal()), "finding a device");
    int can = 0;
    driver.check(driver.api().cuDeviceCanAccessPeer(&can, from, to),
                 "asking whether one device reaches another's memory");
    if (can == 0) {
        reject_field(ErrorKind::value, "peer",
                     "peer=True: kernels on device {} cannot reach the memory of device {}, according to "
                     "the driver. Copy the array to device {} first.",
                     device.ordinal(), peer.ordinal(), device.ordinal());
    }
    const ContextGuard context(device.context());
    const DriverResult code = driver.api().cuCtxEnablePeerAccess(peer.context(), 0);
    if (code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        driver.check(code, fmt::format("opening the memory of device {} to kernels on device {}",
                                       peer.ordinal(), device.ordinal()));
    }
    if (const MemoryPool* pool = MemoryPool::of(peer)) pool->open_to(device);
    peers.fetch_or(bit, std::memory_order_release);
}

void open_peer_memory(Device device, Device peer, std::uint64_t address) {
    enable_peer_access(device, peer);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    unsigned int flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    driver.check(driver.ask_pointer(address, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, &flags),
                 "asking which device reaches an array");
    if (flags == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE) return;
    reject_field(ErrorKind::value, "peer",
                 "peer=True: the array's memory at {:#x} lies on device {}, and kernels on device {} cannot "
                 "{} it. It is of a memory pool (cudaMallocAsync) or mapped, and its owner alone can open "
                 "it: cudaMemPoolSetAccess, or cuMemSetAccess. Copy the array to device {} otherwise.",
                 address, peer.ordinal(), device.ordinal(),
                 flags == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ ? "write to" : "reach", device.ordinal());
}

}  // namespace bascule
