// The allocations of all devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "memory/managed_guard.hpp"
#include "memory/memory.hpp"
#include "memory/shadow.hpp"
#include "memory/shared_pages.hpp"

namespace emulated::memory {

/// All memory that kernels can access, on every device. Device memory has addresses in a window that the host cannot
/// dereference, backed by a second mapping. Pinned and managed memory is at its host address. Thread-safe. There is one for
/// the process, which is passed to its users.
class Heap final : public Memory {
  public:
    /// `capacity` is in bytes per device. `managed` guards managed memory; null if the host may always access it. Throws
    /// std::bad_alloc if not even a small window can be reserved.
    Heap(int devices, std::uint64_t capacity, ManagedGuard* managed = nullptr);
    ~Heap() override;

    /// Allocates at least 1 byte, aligned to 256 or `alignment`, filled with poison, with redzones around it. Returns
    /// nothing if the device is full. As on a GPU, memory of a context that is not primary (`space`) shares no 2 MiB block
    /// with other memory.
    std::optional<DeviceAddress> allocate(int device, std::uint64_t bytes, Allocation::Kind kind,
                                          std::uint64_t alignment = 256, std::uint64_t space = 0);
    /// Like `allocate`, but `find` does not find the memory before `commit`: a stream-ordered allocation has an address at
    /// once and becomes valid later.
    std::optional<DeviceAddress> reserve(int device, std::uint64_t bytes,
                                         std::shared_ptr<const PoolAccess> access = nullptr,
                                         Allocation::Kind kind = Allocation::Kind::device);
    /// Makes the address stay reserved after each `free`, until `end_keeping`. For memory of graphs, which every launch
    /// allocates at the same address.
    void keep(DeviceAddress address);
    /// Ends `keep`. If memory is allocated at the address, returns true, and the next `free` also releases the address.
    /// Otherwise releases the address now and returns false.
    bool end_keeping(DeviceAddress address);
    /// Makes reserved memory valid. Returns false if `address` is not reserved.
    bool commit(DeviceAddress address);
    /// Whether a free was called by the host or in stream order, for descriptions.
    enum class FreedBy : std::uint8_t { host, stream };
    /// Frees and quarantines an allocation. Returns false if no live allocation of this kind starts at `address`.
    bool free(DeviceAddress address, Allocation::Kind kind, FreedBy by = FreedBy::host);
    /// Makes device memory invalid. Its bytes count as free at once, but its address is not reused before `free`, because
    /// its owner does not know yet.
    void lose(DeviceAddress address);
    /// True if `address` is in memory that was lost and not freed since. Fast if there is no such memory.
    bool is_lost(DeviceAddress address) const noexcept;
    /// Lets other processes import the device memory that starts at `address`. Moves its pages to a file without changing
    /// their addresses; nothing may run meanwhile. Returns nothing if there is no such memory or no file.
    std::optional<SharedPlace> share(DeviceAddress address);
    /// Maps another process's memory, which `free` unmaps. Returns nothing if it cannot be mapped. `file` is not kept.
    std::optional<DeviceAddress> import(int device, const SharedPlace& place, std::uint64_t space,
                                        std::shared_ptr<const PoolAccess> access);
    /// Lets kernels use host memory of the client, at its address (cuMemHostRegister).
    bool register_host(void* host, std::uint64_t bytes, int device);
    bool unregister_host(void* host);

    const Allocation* find(DeviceAddress address) const noexcept override;
    /// Like `find`, but also finds reserved memory.
    const Allocation* find_known(DeviceAddress address) const noexcept;
    /// The host address of `address`; null unless one live allocation contains all `bytes`.
    std::byte* host(DeviceAddress address, std::uint64_t bytes) const noexcept;

    /// True for addresses of the window of device memory, allocated or not.
    bool is_device_address(DeviceAddress address) const noexcept;

    void set_read_only(DeviceAddress address);
    /// Sets the text that reports print after "the 64-byte allocation": "'table'", "made at train.py:12".
    void set_name(DeviceAddress address, std::string name);

    /// What of the device memory nothing has written.
    Shadow& shadow() noexcept;

    std::uint64_t capacity(int device) const noexcept;
    std::uint64_t used(int device) const noexcept;

    /// Describes an address for reports: "4 bytes past the 4096-byte allocation 'y'", "inside a freed 64-byte allocation",
    /// "no allocation is near". Also says if an access starts inside an allocation and ends past it.
    std::string describe(DeviceAddress address, std::uint64_t access_bytes) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace emulated::memory
