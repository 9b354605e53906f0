// Finds operations on different streams that access the same bytes without an order between them.
//
// The order is known from vector clocks, which streams and events carry (maintained by streams/graph), and not from when
// operations happened to run, so a race is found under every policy. The accesses are those that kernels, copies and fills
// really made.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "races/access_log.hpp"
#include "races/vector_clock.hpp"

namespace emulated::races {

/// Describes an operation that the host is about to issue. It is trivially destructible, because destructors of static
/// objects may issue operations after thread-local objects are destroyed.
struct Announcement {
    char what[256] = "";  ///< "launch of 'scale'", truncated
    std::uint64_t stream = 0;
    int device = -1;      ///< the stream's device; -1: there is only one
    char site[512] = "";  ///< the place in the host's program; empty if unknown

    /// The announcement of a captured operation that runs in a launch of its graph.
    Announcement in_a_graph(const Announcement& launch) const;
};

/// The vector clock of a stream.
struct Timeline {
    Moment newest;      ///< the stream's newest operation
    VectorClock known;  ///< what precedes its next operation, in addition to what the host knows
};

/// One watched operation.
struct Operation {
    Announcement announced;
    std::uint64_t serial = 0;  ///< number in the order of issue
    Moment moment;
    VectorClock before;                       ///< what precedes it
    std::shared_ptr<const VectorClock> host;  ///< what the host knew to be complete at the issue
    AccessLog log;
    bool finished = false;

    bool comes_after(const Moment& other) const noexcept {
        return before.covers(other) || (host != nullptr && host->covers(other));
    }
};

struct Statistics {
    std::uint64_t nodes = 0, edges = 0, bytes = 0, races = 0;
};

/// Describes an address for reports: "byte 12 of the 64-byte allocation made at train.py:3".
using Describe = std::string (*)(std::uint64_t address, std::uint64_t bytes);

/// There is one for the process, never destroyed. Thread-safe, except that each Timeline belongs to its graph.
class Detector {
  public:
    static Detector& get();

    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
    void switch_to(bool on);
    void describe_with(Describe describe) noexcept { describe_ = describe; }

    /// Sets the announcement of the calling thread's next operation, kept until `begin`.
    static void announce(const Announcement& announcement);
    static Announcement take_announcement();

    /// Adds the announced operation at the end of `timeline`.
    std::shared_ptr<Operation> begin(Timeline& timeline);
    /// Adds the operations that `earlier` knows to `later`.
    void join(VectorClock& later, const VectorClock& earlier);
    /// The host has waited for `done`: it precedes everything that is issued from now on.
    void host_learns(const VectorClock& done);
    /// While on, waits and queries of the calling thread are internal: the program may not rely on them, so the host learns
    /// nothing from them. Nothing is announced either.
    static void set_bookkeeping(bool on) noexcept;
    static bool bookkeeping() noexcept;
    /// Called when the operation has run. Compares its accesses with those of other operations.
    void finish(const std::shared_ptr<Operation>& operation);
    /// Called for new memory: earlier accesses no longer count.
    void forget(std::uint64_t address, std::uint64_t bytes);
    /// The host has waited until the memory was allocated in stream order: the allocation itself no longer counts.
    void forget_allocation(std::uint64_t address, std::uint64_t bytes);
    /// The running operation frees this memory. Work issued from now on may not use it, so its accesses are forgotten when
    /// everything issued before has finished.
    void note_freed(std::uint64_t address, std::uint64_t bytes);

    /// The reports of the races found since the last call.
    std::vector<std::string> take_reports();
    /// Like take_reports, but keeps the reports.
    std::vector<std::string> reports();
    Statistics statistics();

  private:
    struct Record {
        std::shared_ptr<const Operation> by;
        std::unique_ptr<Page> page;
    };
    /// Two operations that access the same bytes without an order.
    struct Race {
        std::shared_ptr<const Operation> first;
        std::uint64_t address = 0, end = 0, bytes = 0;
        bool first_writes = false, second_writes = false;  // the first and the second to run
    };

    static void compare(const Operation& operation, std::uint64_t number, const Page& page,
                        std::vector<Record>& records, std::vector<Race>& races);
    std::string report(Race race, std::shared_ptr<const Operation> second) const;
    void forget_locked(std::uint64_t address, std::uint64_t bytes);
    void forget_what_was_freed();

    std::atomic<bool> on_{false};
    Describe describe_ = nullptr;
    std::mutex mutex_;  // guards the members below
    std::uint64_t next_chain_ = 1;
    std::shared_ptr<const VectorClock> host_;
    std::unordered_map<std::uint64_t, std::vector<Record>> history_;  // by page
    std::deque<std::weak_ptr<const Operation>> begun_;  // in the order of issue; the first has not finished
    struct Freed {
        std::uint64_t address, bytes, serial;  // `serial` of the last operation issued before
    };
    std::deque<Freed> freed_;
    std::vector<std::string> reports_;
    Statistics statistics_;
};

/// While it exists, `operation` runs in this thread, and logged accesses are its own.
class Running {
  public:
    explicit Running(std::shared_ptr<Operation> operation) noexcept;
    ~Running();
    Running(Running&&) = delete;
    /// The log of the operation that runs in this thread; null if it is not watched.
    static AccessLog* log() noexcept;

  private:
    std::shared_ptr<Operation> operation_;
};

}  // namespace emulated::races
