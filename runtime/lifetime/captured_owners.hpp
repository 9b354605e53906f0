// Owners of what others capture: kept until their graph, and whatever was made executable from it, is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {

/// What is known of captures that are none of ours. Nobody tells us of them, and to ask for every launch
/// would cost all launches a call of the driver.
class OthersCapture {
  public:
    /// From the first one on that was seen, every operation that hands owners over asks about its stream.
    static bool seen() noexcept { return seen_.load(std::memory_order_relaxed); }
    static void note() noexcept { seen_.store(true, std::memory_order_relaxed); }

  private:
    inline static std::atomic<bool> seen_{false};
};

/// True when `stream` is being captured by others, whose graph has taken the owners then. Asks the driver;
/// the stream's context is current.
bool keep_for_graph_of_others(StreamRef stream, std::span<const Owner> owners) noexcept;

/// Releases what graphs of others have given back since: the driver says so in a thread of its own, where
/// nothing may be released. No lock of ours is held.
void release_given_back() noexcept;

/// For tests.
std::size_t owners_in_graphs_of_others() noexcept;

}  // namespace bascule
