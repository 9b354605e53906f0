// Owners of what is captured into a foreign graph, one that another library captures: kept until that graph, and
// whatever was made executable from it, is gone.
#pragma once

#include <cstddef>

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// True when another library captures `stream`: its graph has taken the owners then, and owns the code. Asks the
/// driver; the stream's context is current.
bool retain_for_foreign_graph(StreamRef stream, const Owners& owners, const CodeRef* code = nullptr) noexcept;

/// Releases what foreign graphs have given back since: the driver says so in a thread of its own, where
/// nothing may be released. No lock of ours is held.
void release_given_back() noexcept;

/// For tests.
std::size_t owners_in_foreign_graphs() noexcept;

}  // namespace bascule
