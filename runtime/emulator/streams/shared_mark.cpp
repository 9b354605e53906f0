#include "streams/shared_mark.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace emulated::streams {

std::shared_ptr<SharedMark> SharedMark::make() {
    const int file = memfd_create("bascule-emulated-event", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    if (ftruncate(file, sizeof(Page)) != 0) {  // filled with zeros
        close(file);
        return nullptr;
    }
    return open(file);
}

std::shared_ptr<SharedMark> SharedMark::open(int file) {
    void* page = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        close(file);
        return nullptr;
    }
    return std::shared_ptr<SharedMark>(new SharedMark(file, static_cast<Page*>(page)));
}

SharedMark::~SharedMark() {
    munmap(page_, sizeof(Page));
    close(file_);
}

/// A slot is reused only when its earlier record is done: when the later one finishes, the earlier one counts as done,
/// too.
std::uint64_t SharedMark::begin() noexcept {
    std::uint64_t before = page_->newest.load();
    do {
        const std::uint64_t record = before + 1;
        if (record > slots && !is_done(record - slots)) return 0;
    } while (!page_->newest.compare_exchange_weak(before, before + 1));
    return before + 1;
}

}  // namespace emulated::streams
