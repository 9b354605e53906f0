#include "memory/managed_guard.hpp"

#include <algorithm>
#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated::memory {
namespace {

constexpr char report[] =
    "bascule: the host used managed memory while a kernel may run, and this device has no concurrent managed "
    "access (CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0): wait for every kernel first, with "
    "bascule.synchronize()\n";

std::atomic<const ManagedGuard*> the_guard{nullptr};
struct sigaction others = {};  // the previous handler: Python's faulthandler, for one

void on_fault(int signal, siginfo_t* info, void*) {
    const ManagedGuard* guard = the_guard.load();
    if (guard != nullptr && guard->closed() && guard->contains(info->si_addr)) {
        const ssize_t written = write(STDERR_FILENO, report, sizeof report - 1);
        static_cast<void>(written);
    }
    sigaction(signal, &others, nullptr);  // the access is repeated and reaches the previous handler
}

}  // namespace

ManagedGuard::ManagedGuard() {
    the_guard = this;
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &ours, &others);
}

ManagedGuard::Mapping ManagedGuard::map(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto unused = std::ranges::find_if(ranges_, [](const Range& range) { return range.first == 0; });
    if (unused == ranges_.end()) return {};
    void* for_kernels = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (for_kernels == MAP_FAILED) return {};
    void* for_host = mremap(for_kernels, 0, bytes, MREMAP_MAYMOVE);  // a second mapping of the same pages
    if (for_host == MAP_FAILED) {
        munmap(for_kernels, bytes);
        return {};
    }
    if (closed_) mprotect(for_host, bytes, PROT_NONE);
    unused->bytes = bytes;
    unused->first = reinterpret_cast<std::uintptr_t>(for_host);
    return {static_cast<std::byte*>(for_host), static_cast<std::byte*>(for_kernels)};
}

void ManagedGuard::unmap(std::byte* for_host, std::byte* for_kernels, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(for_host);
    const auto found =
        std::ranges::find_if(ranges_, [&](const Range& range) { return range.first == address; });
    if (found != ranges_.end()) found->first = 0;
    munmap(for_host, bytes);
    munmap(for_kernels, bytes);
}

void ManagedGuard::protect(bool closed) {
    const std::lock_guard lock(mutex_);
    if (closed_.exchange(closed) == closed) return;
    for (const Range& range : ranges_) {
        if (range.first != 0) {
            mprotect(reinterpret_cast<void*>(range.first.load()), range.bytes,
                     closed ? PROT_NONE : PROT_READ | PROT_WRITE);
        }
    }
}

bool ManagedGuard::contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(ranges_, [at](const Range& range) {
        const std::uintptr_t first = range.first.load();
        return first != 0 && at - first < range.bytes.load();
    });
}

}  // namespace emulated::memory
