// The allocations of every device: made, found, freed, described.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "memory/managed_guard.hpp"
#include "memory/memory.hpp"
#include "memory/shared_pages.hpp"

namespace emulated::memory {

/// All memory that kernels can reach, of every device. Ordinary device memory lies in a window that the host
/// cannot dereference and is backed by a second mapping; pinned and managed memory lies at its host address.
/// Thread-safe. One for the process, handed to its users.
class Heap final : public Memory {
  public:
    /// `capacity` bytes per device. `managed` guards managed memory; null where the host may always use it.
    /// Throws std::bad_alloc when not even a small window can be reserved.
    Heap(int devices, std::uint64_t capacity, ManagedGuard* managed = nullptr);
    ~Heap() override;

    /// 256-byte aligned (at least `alignment`), poisoned, with redzones around it. Nothing when the device is
    /// full. `bytes` is at least 1. As on a GPU, memory of a context that is not primary (`space`) shares no
    /// block of 2 MiB with any other.
    std::optional<DeviceAddress> allocate(int device, std::uint64_t bytes, Allocation::Kind kind,
                                          std::uint64_t alignment = 256, std::uint64_t space = 0);
    /// As `allocate`, but nothing is found at the address before `commit`: what is allocated in stream order has an
    /// address at once, and is memory later.
    std::optional<DeviceAddress> reserve(int device, std::uint64_t bytes,
                                         std::shared_ptr<const PoolAccess> access = nullptr,
                                         Allocation::Kind kind = Allocation::Kind::device);
    /// What is reserved there is so again after each `free`, until `end_keeping`: memory of graphs, which every launch
    /// allocates at one address.
    void keep(DeviceAddress address);
    /// True when memory is there, which the next `free` frees; otherwise the address is given back now.
    bool end_keeping(DeviceAddress address);
    /// False when `address` is not reserved.
    bool commit(DeviceAddress address);
    /// What a free was ordered by, for descriptions.
    enum class FreedBy : std::uint8_t { host, stream };
    /// False when no live allocation starts at `address`, or it is of another kind. The range is quarantined.
    bool free(DeviceAddress address, Allocation::Kind kind, FreedBy by = FreedBy::host);
    /// Device memory that nothing is found at any more. Its bytes count as free at once; its address is not used again
    /// before `free`, because its owner does not know yet.
    void lose(DeviceAddress address);
    /// Whether memory that was lost, and not freed since, contains `address`. Fast while there is none.
    bool is_lost(DeviceAddress address) const noexcept;
    /// Makes other processes able to import the device memory that begins at `address`. Its pages move into a file, at the
    /// addresses where they are: the caller lets nothing run meanwhile. Nothing where there is no such memory, or no file.
    std::optional<SharedPlace> share(DeviceAddress address);
    /// Another process's memory, which `free` takes out of this one. Nothing where it cannot be mapped. `file` is not kept.
    std::optional<DeviceAddress> import(int device, const SharedPlace& place, std::uint64_t space,
                                        std::shared_ptr<const PoolAccess> access);
    /// Host memory of the client that kernels may use (cuMemHostRegister); its address stays what it is.
    bool register_host(void* host, std::uint64_t bytes, int device);
    bool unregister_host(void* host);

    const Allocation* find(DeviceAddress address) const noexcept override;
    /// As `find`, and what is reserved.
    const Allocation* find_known(DeviceAddress address) const noexcept;
    /// Where `bytes` from `address` lie in this process; null unless one live allocation holds all of them.
    std::byte* host(DeviceAddress address, std::uint64_t bytes) const noexcept;

    /// True for addresses that ordinary device memory may have, allocated or not.
    bool is_device_address(DeviceAddress address) const noexcept;

    void set_read_only(DeviceAddress address);
    /// What a report says after "the 64-byte allocation": "'table'", "made at train.py:12".
    void set_name(DeviceAddress address, std::string name);

    std::uint64_t capacity(int device) const noexcept;
    std::uint64_t used(int device) const noexcept;

    /// Where an address lies, for reports: "4 bytes past the 4096-byte allocation 'y'", "inside a freed
    /// 64-byte allocation", "no allocation is near". For an access that starts inside and ends past the end
    /// it says so.
    std::string describe(DeviceAddress address, std::uint64_t access_bytes) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace emulated::memory
