#include "checks/order/race_shadow.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace emulated::checks {

bool Shadow::take(std::uint64_t bytes) noexcept {
    if (used_ + bytes <= most_bytes) {
        used_ += bytes;
        return true;
    }
    static std::atomic<bool> said = false;
    if (!said.exchange(true))
        std::fputs(
            "bascule: a kernel accesses more memory than the search for races between threads can watch (about 48 "
            "MiB). Races in the rest of its memory are not found. Check it with smaller arrays.\n",
            stderr);
    return false;
}

Shadow::Page* Shadow::turn_to(std::uint64_t number) {
    const auto found = pages_.find(number);
    if (found != pages_.end()) return found->second.get();
    if (!take(sizeof(Page))) return nullptr;
    return pages_.emplace(number, std::make_unique<Page>()).first->second.get();
}

std::array<Cell, 4>* Shadow::parts(Cell& cell) {
    if (cell.parts != 0) return &parts_[cell.parts - 1];
    if (!take(sizeof parts_.front())) return nullptr;
    std::array<Cell, 4>& made = parts_.emplace_back();
    cell.parts = static_cast<std::uint32_t>(parts_.size());
    for (unsigned byte = 0; byte < 4; ++byte) {
        made[byte].kept = cell.kept;
        for (Accesses& each : made[byte].kept) each.bytes = each.bytes & (1u << byte);
    }
    cell.kept = {};
    return &made;
}

void Shadow::clear(Cell& cell) {
    cell.kept = {};
    if (cell.parts != 0) parts_[cell.parts - 1] = {};
}

void Shadow::clear(std::vector<Cell>& cells, std::size_t count) {
    for (Cell& cell : cells) clear(cell);
    cells.resize(count);
}

void Shadow::forget(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t end = address + bytes;
    for (std::uint64_t at = address; at < end; at = at / page_bytes * page_bytes + page_bytes) {
        const auto page = pages_.find(at / page_bytes);
        if (page == pages_.end()) continue;
        const std::uint64_t last = std::min(end - at / page_bytes * page_bytes, page_bytes);
        for (std::uint64_t k = at % page_bytes / 4; k < (last + 3) / 4; ++k) clear(page->second->cells[k]);
    }
}

}  // namespace emulated::checks
