// Finds operations on different streams that touch the same bytes and that nothing orders.
//
// What comes before what is said by vector clocks, which streams and events carry (streams/graph keeps them),
// never by when operations happened to run: a race is found under every policy. What is touched is what
// kernels, copies and fills really read and wrote.
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

/// What the host says of an operation that it is about to issue. Plain bytes: static objects may still issue
/// when a thread's other objects are gone.
struct Announcement {
    char what[256] = "";  ///< "launch of 'scale'", cut to fit
    std::uint64_t stream = 0;
    int device = -1;      ///< whose stream it is; -1: there is only one
    char site[512] = "";  ///< where in the host's program; empty when unknown

    /// Of an operation that was captured as this says, and runs in a graph that was launched as that says.
    Announcement in_a_graph(const Announcement& launch) const;
};

/// A stream's side of the clocks.
struct Timeline {
    Moment newest;      ///< the stream's newest operation
    VectorClock known;  ///< what its next operation comes after, beyond what the host knows
};

/// One watched operation.
struct Operation {
    Announcement announced;
    std::uint64_t serial = 0;  ///< in the order of issue
    Moment moment;
    VectorClock before;                       ///< what it comes after
    std::shared_ptr<const VectorClock> host;  ///< what the host knew to be done when it issued it
    AccessLog log;
    bool finished = false;

    bool comes_after(const Moment& other) const noexcept {
        return before.covers(other) || (host != nullptr && host->covers(other));
    }
};

struct Statistics {
    std::uint64_t nodes = 0, edges = 0, bytes = 0, races = 0;
};

/// Says what an address is, for reports: "byte 12 of the 64-byte allocation made at train.py:3".
using Describe = std::string (*)(std::uint64_t address, std::uint64_t bytes);

/// One for the process, never destroyed. Thread-safe; a Timeline is its graph's.
class Detector {
  public:
    static Detector& get();

    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
    void switch_to(bool on);
    void describe_with(Describe describe) noexcept { describe_ = describe; }

    /// What the calling thread issues next; kept until `begin`.
    static void announce(const Announcement& announcement);
    static Announcement take_announcement();

    /// A new operation at the end of `timeline`, as announced.
    std::shared_ptr<Operation> begin(Timeline& timeline);
    /// `later` comes after what `earlier` says from now on.
    void join(VectorClock& later, const VectorClock& earlier);
    /// The host has seen the end of it: everything that is issued from now on comes after it.
    void host_learns(const VectorClock& done);
    /// While on, the calling thread waits and asks for purposes of its own: the program may not rely on it,
    /// so that the host learns nothing. Nothing is announced either.
    static void set_bookkeeping(bool on) noexcept;
    static bool bookkeeping() noexcept;
    /// The operation has run; its accesses are compared with everybody else's.
    void finish(const std::shared_ptr<Operation>& operation);
    /// New memory: what was done there before no longer counts.
    void forget(std::uint64_t address, std::uint64_t bytes);
    /// The host has waited until it was allocated in the order of a stream: that alone no longer counts.
    void forget_allocation(std::uint64_t address, std::uint64_t bytes);
    /// Memory that the running operation frees. What is issued from now on may not use it, so that it is forgotten when
    /// all that was issued before has finished.
    void note_freed(std::uint64_t address, std::uint64_t bytes);

    /// The reports of the races found since the last call.
    std::vector<std::string> take_reports();
    /// As take_reports, and leaves them.
    std::vector<std::string> reports();
    Statistics statistics();

  private:
    struct Record {
        std::shared_ptr<const Operation> by;
        std::unique_ptr<Page> page;
    };
    /// Two operations that touch the same bytes unordered.
    struct Race {
        std::shared_ptr<const Operation> first;
        std::uint64_t address = 0, end = 0, bytes = 0;
        bool first_writes = false, second_writes = false;  // first and second to have run
    };

    static void compare(const Operation& operation, std::uint64_t number, const Page& page,
                        std::vector<Record>& records, std::vector<Race>& races);
    std::string report(Race race, std::shared_ptr<const Operation> second) const;
    void forget_locked(std::uint64_t address, std::uint64_t bytes);
    void forget_what_was_freed();

    std::atomic<bool> on_{false};
    Describe describe_ = nullptr;
    std::mutex mutex_;  // of what follows
    std::uint64_t next_chain_ = 1;
    std::shared_ptr<const VectorClock> host_;
    std::unordered_map<std::uint64_t, std::vector<Record>> history_;  // by page
    std::deque<std::weak_ptr<const Operation>> begun_;  // in the order of issue; the first has not finished
    struct Freed {
        std::uint64_t address, bytes, serial;  // of the last operation that was issued before
    };
    std::deque<Freed> freed_;
    std::vector<std::string> reports_;
    Statistics statistics_;
};

/// While it lives, `operation` runs in this thread, and what is logged is its.
class Running {
  public:
    explicit Running(std::shared_ptr<Operation> operation) noexcept;
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    /// Of the operation that runs in this thread; null when it is not watched.
    static AccessLog* log() noexcept;

  private:
    std::shared_ptr<Operation> operation_;
};

}  // namespace emulated::races
