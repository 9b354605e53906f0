// Pageable host memory for kernels that can access all of it (HMM, Grace).
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory/memory.hpp"

namespace emulated::memory {

/// Pages of this process. Each is checked by itself, because nothing reports when pages are mapped or unmapped.
/// Thread-safe.
class HostPages {
  public:
    /// The page that contains `address`; null if the process may not read it. The result is never
    /// freed. If a page is unmapped while a kernel uses it, the process crashes.
    const Allocation* find(DeviceAddress address);

  private:
    struct Region {
        DeviceAddress first = 0, end = 0;
        bool writable = false;
    };
    bool is_writable(DeviceAddress page);
    void read_regions();

    std::mutex mutex_;  // guards the members below
    std::unordered_map<DeviceAddress, std::unique_ptr<Allocation>> pages_;
    std::vector<Region> regions_;  // as last read
};

}  // namespace emulated::memory
