// The heap from which malloc and new in a context's kernels allocate (CU_LIMIT_MALLOC_HEAP_SIZE).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/grid.hpp"
#include "memory/heap.hpp"
#include "races/access_log.hpp"

namespace emulated::heap {

/// Memory from this heap lives until a kernel frees it, the device is reset or the context ends. The host cannot copy
/// it, as on a GPU. Thread-safe.
class KernelHeap {
  public:
    static constexpr std::uint64_t default_limit = std::uint64_t{8} << 20;
    /// Each allocation counts this many bytes more against the limit, and its size is rounded up to a multiple of it.
    static constexpr std::uint64_t header_bytes = 16;

    /// `space` is as in Allocation::space.
    KernelHeap(memory::Heap& memory, int device, std::uint64_t space) noexcept
        : memory_(memory), device_(device), space_(space) {}

    /// Called when a kernel that uses the heap is launched. The first call fixes the size at `limit`.
    void open(std::uint64_t limit);
    bool opened() const;

    /// Memory that one source line allocated and that is not freed.
    struct Live {
        std::string kernel;  ///< demangled
        machine::SourceLine line;
        std::uint64_t count = 0, bytes = 0;
    };
    std::vector<Live> live() const;
    /// Frees everything and lets the limit be set again. Reports about this memory end with `why`.
    void drop(const std::string& why);

  private:
    friend class HeapOfLaunch;
    struct Block {
        std::uint64_t bytes = 0;
        std::string kernel;
        machine::SourceLine line;
    };

    memory::Heap& memory_;
    const int device_;
    const std::uint64_t space_;
    mutable std::mutex mutex_;  // guards the members below
    bool opened_ = false;
    std::uint64_t limit_ = default_limit, used_ = 0;
    std::unordered_map<memory::DeviceAddress, Block> blocks_;
};

/// The heap for the kernel of one launch.
class HeapOfLaunch final : public machine::DeviceHeap {
  public:
    HeapOfLaunch(KernelHeap& heap, std::string kernel, bool looks_for_races)
        : heap_(heap), kernel_(std::move(kernel)), looks_for_races_(looks_for_races) {}

    memory::DeviceAddress allocate(std::uint64_t bytes, std::uint64_t alignment,
                                   const machine::SourceLine& line) override;
    std::string free(memory::DeviceAddress address, const machine::SourceLine& line) override;

    /// Removes freed memory from the log, because another kernel may get the same addresses without racing.
    void forget_freed(races::AccessLog& log) const;

  private:
    KernelHeap& heap_;
    const std::string kernel_;
    const bool looks_for_races_;
    std::vector<std::pair<memory::DeviceAddress, std::uint64_t>> freed_;  // guarded by heap_.mutex_
};

/// A source line as reports name it: "line 7 of k.cu".
std::string words_of(const machine::SourceLine& line);
/// A report of the lines that allocated memory that is not freed; empty if there are none.
std::string describe_leaks(const std::vector<KernelHeap::Live>& leaks);

}  // namespace emulated::heap
