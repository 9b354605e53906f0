// Which streams wait for which: the launch for its producers, the producers for the launch.
// The rules are numbered in DESIGN.md ("Order").
#pragma once

#include <optional>
#include <span>

#include <bascule/interface/argument.hpp>
#include <bascule/runtime/stream.hpp>

namespace bascule {

/// The stream of an operation: the one given; else the current one; else, if every array names one and the
/// same, that; else the device's default stream.
StreamRef choose_stream(std::optional<StreamRef> given, std::optional<StreamRef> current,
                        std::optional<std::uint64_t> common_producer, Device device) noexcept;

/// Later work on `stream` waits for what each producer has enqueued so far: one record and one wait a stream
/// other than `stream`. Throws: CudaError; nothing was launched then.
void wait_for_producers(StreamRef stream, std::span<const Producer> producers);

/// Later work on each producer waits for what `stream` has enqueued so far: one record, one wait a producer.
/// When that fails the host waits for `stream` before this throws CudaError: the order is never left open.
void order_producers_after(StreamRef stream, std::span<const Producer> producers);

}  // namespace bascule
