// Owners of what is captured into a foreign graph, one that another library captures: kept until that graph, and
// whatever was made executable from it, is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include <bascule/runtime/lifetime/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// What is known of captures that are not ours. Nobody tells us of them, and asking for every launch would
/// cost all launches a call of the driver.
class ForeignCapture {
  public:
    /// From the first one on that was seen, every operation that hands owners over asks about its stream.
    static bool seen() noexcept { return seen_.load(std::memory_order_relaxed); }
    static void note() noexcept { seen_.store(true, std::memory_order_relaxed); }

  private:
    inline static std::atomic<bool> seen_{false};
};

/// True when another library captures `stream`: its graph has taken the owners then. Asks the driver;
/// the stream's context is current.
bool retain_for_foreign_graph(StreamRef stream, const Owners& owners) noexcept;

/// Releases what foreign graphs have given back since: the driver says so in a thread of its own, where
/// nothing may be released. No lock of ours is held.
void release_given_back() noexcept;

/// For tests.
std::size_t owners_in_foreign_graphs() noexcept;

}  // namespace bascule
