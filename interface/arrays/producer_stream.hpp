// The stream on which an array's producer issued its work, with which operations on the array are ordered.
#pragma once

#include <cstdint>

namespace bascule {

/// The place where the stream of an array was found, or the reason why no stream is known.
enum class StreamSource : std::uint8_t {
    interface,   ///< version 3 of the interface: its `stream`; None means that there is nothing to wait for
    own,         ///< the array is Bascule's: the stream that it is bound to
    unsaid,      ///< no source: an earlier version of the interface has no `stream`
    table,       ///< the work stream of its library's DLPack exchange table
    library,     ///< the array's library returned its current stream
    registered,  ///< the function that is registered for the array's type
    dlpack,      ///< the array's library made the consumer's stream wait
    call,        ///< the caller named the stream
    ignored,     ///< the caller, the environment or the configuration said to ignore it
};

/// The stream of an array, as a value. Without a stream there is nothing to wait for, or nothing is known; `source`
/// tells which.
struct ProducerStream {
    std::uint64_t handle = 0;  ///< 1: legacy default, 2: per-thread default; 0: no stream
    int device = -1;           ///< the number of the stream's device; -1: the device where the array is used
    StreamSource source = StreamSource::interface;

    explicit operator bool() const noexcept { return handle != 0; }
    /// Compares all members except `source`.
    bool same_stream(const ProducerStream& other) const noexcept {
        return handle == other.handle && device == other.device;
    }
};

/// No stream, because the caller, the environment or the configuration said to ignore it.
inline constexpr ProducerStream ignored_stream{.source = StreamSource::ignored};

/// A stream that an operation is ordered with.
struct Producer {
    ProducerStream stream;
    int argument = 0;  ///< the index of the first argument that names it
};

}  // namespace bascule
