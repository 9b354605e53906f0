// Keeps owners of work that another library captures into its graph, until the graph and all executable graphs made
// from it are destroyed.
#pragma once

#include <cstddef>

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// If another library captures `stream`, gives the owners and the code to its graph and returns true. Returns false
/// otherwise, and also if the driver refuses or memory has run out. Queries the driver; the stream's context must be
/// current.
bool retain_for_foreign_graph(StreamRef stream, const Owners& owners, const CodeRef* code = nullptr) noexcept;

/// Releases owners of foreign graphs that have been destroyed. The driver reports the destruction in a thread of its
/// own, where nothing may be released. The caller must hold no lock.
void release_owners_of_ended_graphs() noexcept;

/// The number of owners in foreign graphs. Used by tests.
std::size_t owners_in_foreign_graphs() noexcept;

}  // namespace bascule
