#include "memory/shadow.hpp"

#include <cstring>
#include <sys/mman.h>

namespace emulated::memory {

Shadow::~Shadow() {
    if (pages_ != nullptr) munmap(pages_, bytes_);
}

void Shadow::turn(bool on) noexcept {
    if (on == (bits_.load() != nullptr)) return;
    if (!on) {
        bits_ = nullptr;
        madvise(pages_, bytes_, MADV_DONTNEED);  // the pages are zero again
        return;
    }
    if (pages_ == nullptr) {
        void* const made =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return;
        pages_ = static_cast<std::byte*>(made);
    }
    bits_ = pages_;
}

void Shadow::define(DeviceAddress address, std::uint64_t bytes) const noexcept {
    if (std::byte* const first = at(address, bytes)) std::memset(first, 0, bytes);
}

void Shadow::undefine(DeviceAddress address, std::uint64_t bytes) const noexcept {
    if (std::byte* const first = at(address, bytes)) std::memset(first, 0xff, bytes);
}

void Shadow::copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) const noexcept {
    std::byte* const target = at(to, bytes);
    const std::byte* const source = at(from, bytes);
    if (target != nullptr && source != nullptr)
        std::memmove(target, source, bytes);
    else
        define(to, bytes);
}

}  // namespace emulated::memory
