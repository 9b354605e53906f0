// The heap of a context's kernels (CU_LIMIT_MALLOC_HEAP_SIZE): what malloc and new in a kernel return.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/device_heap.hpp"
#include "memory/heap.hpp"
#include "races/access_log.hpp"

namespace emulated::heap {

/// Memory that lives until a kernel frees it, its device is reset or its context ends. Copies of the host do not reach
/// it, as on a GPU. Thread-safe.
class KernelHeap {
  public:
    static constexpr std::uint64_t default_limit = std::uint64_t{8} << 20;
    /// What an allocation takes of the limit beside its bytes, which count in units of as many.
    static constexpr std::uint64_t header_bytes = 16;

    /// `space` as Allocation::space.
    KernelHeap(memory::Heap& memory, int device, std::uint64_t space) noexcept
        : memory_(memory), device_(device), space_(space) {}

    /// A kernel that uses the heap is launched: from now on its size is fixed, `limit` at first.
    void open(std::uint64_t limit);
    bool opened() const;

    /// What one line of a kernel allocated and nothing has freed.
    struct Live {
        std::string kernel;  ///< as in the source
        machine::SourceLine line;
        std::uint64_t count = 0, bytes = 0;
    };
    std::vector<Live> live() const;
    /// Frees everything, and lets the limit be set again; `why` is added to the descriptions of the memory.
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
    mutable std::mutex mutex_;  // of what follows
    bool opened_ = false;
    std::uint64_t limit_ = default_limit, used_ = 0;
    std::unordered_map<memory::DeviceAddress, Block> blocks_;
};

/// The heap as the kernel of one launch sees it.
class HeapOfLaunch final : public machine::DeviceHeap {
  public:
    HeapOfLaunch(KernelHeap& heap, std::string kernel, bool looks_for_races)
        : heap_(heap), kernel_(std::move(kernel)), looks_for_races_(looks_for_races) {}

    memory::DeviceAddress allocate(std::uint64_t bytes, std::uint64_t alignment,
                                   const machine::SourceLine& line) override;
    std::string free(memory::DeviceAddress address, const machine::SourceLine& line) override;

    /// Takes from the log what the kernel freed: another one may have the same addresses, and does not race with it.
    void forget_freed(races::AccessLog& log) const;

  private:
    KernelHeap& heap_;
    const std::string kernel_;
    const bool looks_for_races_;
    std::vector<std::pair<memory::DeviceAddress, std::uint64_t>> freed_;  // guarded by heap_.mutex_
};

/// "line 7 of k.cu", as reports say it.
std::string words_of(const machine::SourceLine& line);
/// For stderr: every line that allocated what nothing has freed; empty when there is none.
std::string describe_leaks(const std::vector<KernelHeap::Live>& leaks);

}  // namespace emulated::heap
