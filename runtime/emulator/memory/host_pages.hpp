// Host memory that no driver knows, as kernels see it where they reach all of it (HMM, Grace).
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory/memory.hpp"

namespace emulated::memory {

/// Pages of this process, asked about one by one, because nothing tells when they are mapped and unmapped.
/// Thread-safe.
class HostPages {
  public:
    /// The page that contains `address`; null where the process may not read it. Never freed. A page that is
    /// unmapped while a kernel uses it is a fault of the process.
    const Allocation* find(DeviceAddress address);

  private:
    struct Region {
        DeviceAddress first = 0, end = 0;
        bool writable = false;
    };
    bool is_writable(DeviceAddress page);
    void read_regions();

    std::mutex mutex_;  // of what follows
    std::unordered_map<DeviceAddress, std::unique_ptr<Allocation>> pages_;
    std::vector<Region> regions_;  // as they were when they were read last
};

}  // namespace emulated::memory
