#include "memory/shared_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated::memory {
namespace {

constexpr std::uint64_t shared_page_bytes = 4096;

std::uint64_t page_below(std::uint64_t offset) noexcept {
    return offset / shared_page_bytes * shared_page_bytes;
}
std::uint64_t page_above(std::uint64_t offset) noexcept { return page_below(offset + shared_page_bytes - 1); }

bool write_all(int file, const std::byte* bytes, std::uint64_t count, std::uint64_t offset) noexcept {
    while (count > 0) {
        const ssize_t written = pwrite(file, bytes, count, static_cast<off_t>(offset));
        if (written <= 0) return false;
        bytes += written;
        offset += static_cast<std::uint64_t>(written);
        count -= static_cast<std::uint64_t>(written);
    }
    return true;
}

}  // namespace

SharedPages::~SharedPages() {
    if (file_ >= 0) close(file_);
}

bool SharedPages::share(std::byte* window, std::uint64_t window_bytes, std::uint64_t offset,
                        std::uint64_t bytes) {
    if (shared_.contains(offset)) return true;
    if (file_ < 0) {
        const int made = memfd_create("bascule-emulated-memory", MFD_CLOEXEC);
        if (made < 0) return false;
        if (ftruncate(made, static_cast<off_t>(window_bytes)) != 0) {
            close(made);
            return false;
        }
        file_ = made;
    }
    // A page at an end may already be shared with a neighbour; then it is written to itself.
    const std::uint64_t first = page_below(offset), end = page_above(offset + bytes);
    if (!write_all(file_, window + first, end - first, first)) return false;
    if (!map(file_, first, window + first, end - first)) return false;
    shared_.insert(offset);
    return true;
}

void SharedPages::end_sharing(std::byte* window, std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (shared_.erase(offset) == 0) return;
    // Pages at the ends may also contain neighbouring allocations.
    const std::uint64_t first = page_above(offset), end = page_below(offset + bytes);
    if (first >= end || !unmap(window + first, end - first)) return;
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(end - first));
}

bool SharedPages::map(int file, std::uint64_t offset, std::byte* at, std::uint64_t bytes) noexcept {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
                static_cast<off_t>(offset)) != MAP_FAILED;
}

bool SharedPages::unmap(std::byte* at, std::uint64_t bytes) noexcept {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
}

}  // namespace emulated::memory
