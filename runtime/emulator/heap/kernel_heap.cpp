#include "heap/kernel_heap.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "races/detector.hpp"

namespace emulated::heap {
namespace {

using memory::Allocation;
using memory::DeviceAddress;

constexpr auto kind = Allocation::Kind::kernel_heap;

/// The bytes that an allocation counts against the limit; UINT64_MAX on overflow.
std::uint64_t cost_of(std::uint64_t bytes) {
    constexpr std::uint64_t unit = KernelHeap::header_bytes;
    return bytes > UINT64_MAX / 2 ? UINT64_MAX : (bytes + unit - 1) / unit * unit + unit;
}

std::string name_of(const std::string& kernel, const machine::SourceLine& line) {
    return fmt::format("that kernel '{}' made at {}", kernel, words_of(line));
}

}  // namespace

std::string words_of(const machine::SourceLine& line) {
    return line.line == 0
               ? "an unknown line"
               : fmt::format("line {} of {}", line.line, line.file.empty() ? "the source" : line.file);
}

void KernelHeap::open(std::uint64_t limit) {
    const std::lock_guard lock(mutex_);
    if (!opened_) limit_ = limit;
    opened_ = true;
}

bool KernelHeap::opened() const {
    const std::lock_guard lock(mutex_);
    return opened_;
}

std::vector<KernelHeap::Live> KernelHeap::live() const {
    std::map<std::tuple<std::string, std::string, std::uint32_t>, Live> found;
    const std::lock_guard lock(mutex_);
    for (const auto& [address, block] : blocks_) {
        Live& live = found[{block.kernel, block.line.file, block.line.line}];
        live.kernel = block.kernel;
        live.line = block.line;
        ++live.count;
        live.bytes += block.bytes;
    }
    std::vector<Live> all;
    all.reserve(found.size());
    for (auto& [key, live] : found) all.push_back(std::move(live));
    return all;
}

void KernelHeap::drop(const std::string& why) {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, block] : blocks_) {
        memory_.set_name(address, fmt::format("{}, {}", name_of(block.kernel, block.line), why));
        memory_.free(address, kind);
    }
    blocks_.clear();
    used_ = 0;
    opened_ = false;
}

DeviceAddress HeapOfLaunch::allocate(std::uint64_t bytes, std::uint64_t alignment,
                                     const machine::SourceLine& line) {
    const std::uint64_t cost = cost_of(std::max<std::uint64_t>(bytes, 1));
    {
        const std::lock_guard lock(heap_.mutex_);
        if (cost > heap_.limit_ - heap_.used_) return 0;
        heap_.used_ += cost;
    }
    memory::Heap& heap = heap_.memory_;
    const auto made =
        heap.allocate(heap_.device_, std::max<std::uint64_t>(bytes, 1), kind, alignment, heap_.space_);
    const std::lock_guard lock(heap_.mutex_);
    if (!made) {
        heap_.used_ -= cost;
        return 0;
    }
    heap.set_name(*made, name_of(kernel_, line));
    if (looks_for_races_) {
        races::Detector::get().forget(*made, bytes);
        std::erase_if(freed_, [&](const auto& range) { return range.first == *made; });
    }
    heap_.blocks_[*made] = {bytes, kernel_, line};
    return *made;
}

std::string HeapOfLaunch::free(DeviceAddress address, const machine::SourceLine& line) {
    memory::Heap& heap = heap_.memory_;
    const std::lock_guard lock(heap_.mutex_);
    const auto found = heap_.blocks_.find(address);
    if (found == heap_.blocks_.end()) {
        return fmt::format("no memory of malloc or new begins there: it is {}", heap.describe(address, 1));
    }
    heap.set_name(address, fmt::format("{} and freed at {}",
                                       name_of(found->second.kernel, found->second.line), words_of(line)));
    const std::uint64_t bytes = found->second.bytes;
    heap.free(address, kind);
    heap_.used_ -= cost_of(std::max<std::uint64_t>(bytes, 1));
    heap_.blocks_.erase(found);
    if (looks_for_races_) {
        races::Detector::get().note_freed(address, bytes);
        freed_.emplace_back(address, bytes);
    }
    return "";
}

void HeapOfLaunch::forget_freed(races::AccessLog& log) const {
    for (const auto& [address, bytes] : freed_) log.remove(address, bytes);
}

std::string describe_leaks(const std::vector<KernelHeap::Live>& leaks) {
    if (leaks.empty()) return "";
    std::string text = "memory that kernels allocated and that nothing has freed:";
    for (const KernelHeap::Live& leak : leaks) {
        text += fmt::format("\n  {} bytes in {} allocation{}, made by kernel '{}' at {}", leak.bytes,
                            leak.count, leak.count == 1 ? "" : "s", leak.kernel, words_of(leak.line));
    }
    return text;
}

}  // namespace emulated::heap
