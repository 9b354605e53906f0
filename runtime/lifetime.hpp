// Keeps the owners of launched memory until the kernels that may touch it have finished.
#pragma once

#include <cstddef>
#include <span>

#include <bascule/runtime/stream.hpp>

namespace bascule {

/// Something to keep: `release(object)` gives it up. Release functions take whatever lock they need
/// (Python's: the GIL).
struct Owner {
    void* object = nullptr;
    void (*release)(void*) noexcept = nullptr;
};

/// Takes the owners of an operation just enqueued on `stream`. One marker event is recorded for every 64
/// operations; what finished before the oldest markers is released here, by the calling thread; at most 1,024
/// operations are held, then the oldest marker is waited for. Never throws: when the driver refuses, it waits
/// for the stream and releases.
void keep_until_done(StreamRef stream, std::span<const Owner> owners) noexcept;

/// Releases everything kept for `stream`: it was synchronised.
void release_finished(StreamRef stream) noexcept;
/// Releases everything kept for every stream of `device`: the device was synchronised.
void release_finished(Device device) noexcept;

/// Owners held now, for tests.
std::size_t owners_held() noexcept;

}  // namespace bascule
