#include "memory/host_pages.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <sys/syscall.h>
#include <unistd.h>

namespace emulated::memory {
namespace {

constexpr std::uint64_t host_page_bytes = 4096;

/// Calls rt_sigprocmask with an invalid `how`: it reads 8 bytes at the address before it rejects `how`, and changes
/// nothing.
bool is_readable(DeviceAddress address) noexcept {
    constexpr long no_such_how = -1;
    return syscall(SYS_rt_sigprocmask, no_such_how, address, nullptr, std::size_t{8}) == 0 || errno != EFAULT;
}

}  // namespace

const Allocation* HostPages::find(DeviceAddress address) {
    const DeviceAddress page = address / host_page_bytes * host_page_bytes;
    if (page == 0) return nullptr;  // the system call does not read a null pointer
    const std::lock_guard lock(mutex_);
    if (!is_readable(page)) return nullptr;
    std::unique_ptr<Allocation>& known = pages_[page];
    if (known != nullptr) return known.get();
    known = std::make_unique<Allocation>(Allocation{.base = page,
                                                    .bytes = host_page_bytes,
                                                    .host = reinterpret_cast<std::byte*>(page),
                                                    .kind = Allocation::Kind::pinned,  // for every context
                                                    .read_only = !is_writable(page)});
    return known.get();
}

bool HostPages::is_writable(DeviceAddress page) {
    const auto find = [&] {
        return std::ranges::find_if(
            regions_, [&](const Region& region) { return page >= region.first && page < region.end; });
    };
    auto found = find();
    if (found == regions_.end()) {
        read_regions();
        found = find();
    }
    return found != regions_.end() && found->writable;
}

void HostPages::read_regions() {
    regions_.clear();
    std::FILE* file = std::fopen("/proc/self/maps", "r");
    if (file == nullptr) return;
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        Region region;
        char readable = 0, writable = 0;
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &region.first, &region.end, &readable,
                        &writable) != 4)
            continue;
        region.writable = writable == 'w';
        regions_.push_back(region);
    }
    std::fclose(file);
}

}  // namespace emulated::memory
