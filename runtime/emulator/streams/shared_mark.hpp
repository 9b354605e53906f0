// The state of an event that several processes use: a page that all of them map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace emulated::streams {

/// Counts the records of an event in all processes, and which of them are done. Thread-safe.
class SharedMark {
  public:
    /// Returns null if out of memory.
    static std::shared_ptr<SharedMark> make();
    /// Maps another process's page and takes ownership of the descriptor. Returns null on failure.
    static std::shared_ptr<SharedMark> open(int file);
    ~SharedMark();
    SharedMark(SharedMark&&) = delete;

    int file() const noexcept { return file_; }

    /// The number of the newest record; 0 before the first.
    std::uint64_t newest() const noexcept { return page_->newest.load(); }
    /// Starts a record and returns its number; 0 while too many are unfinished.
    std::uint64_t begin() noexcept;
    /// Called when the record is reached.
    void finish(std::uint64_t record) noexcept { slot(record).store(record); }
    bool is_done(std::uint64_t record) const noexcept { return record == 0 || slot(record).load() >= record; }

  private:
    static constexpr std::size_t slots = 500;
    struct Page {
        std::atomic<std::uint64_t> newest;
        std::atomic<std::uint64_t> done[slots];  ///< the newest finished record of each slot
    };
    static_assert(sizeof(Page) <= 4096 && std::atomic<std::uint64_t>::is_always_lock_free);

    SharedMark(int file, Page* page) noexcept : file_(file), page_(page) {}
    std::atomic<std::uint64_t>& slot(std::uint64_t record) const noexcept {
        return page_->done[record % slots];
    }

    int file_;
    Page* page_;
};

}  // namespace emulated::streams
