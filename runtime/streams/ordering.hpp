// Decides which streams wait for which: the launch for its producers, then the producers for the launch.
// runtime/streams/ORDER.md numbers the rules.
#pragma once

#include <optional>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Why an operation uses its stream.
enum class StreamChoice : std::uint8_t { given, current, common_producer, device_default };

/// The first that exists of: the given stream, the current stream, the stream that all arrays name, the default stream.
inline StreamChoice how_chosen(const std::optional<StreamRef>& given, const std::optional<StreamRef>& current,
                               std::optional<std::uint64_t> common_producer) noexcept {
    if (given) return StreamChoice::given;
    if (current) return StreamChoice::current;
    return common_producer ? StreamChoice::common_producer : StreamChoice::device_default;
}

/// The stream of an operation: the given stream; else the current stream; else the stream that all arrays name; else
/// the device's default stream.
inline StreamRef choose_stream(const std::optional<StreamRef>& given, const std::optional<StreamRef>& current,
                               std::optional<std::uint64_t> common_producer, Device device) noexcept {
    if (given) return *given;  // in the order of how_chosen
    if (current) return *current;
    if (common_producer) return {*common_producer, device};
    return StreamRef::device_default(device);
}

/// Whether the producer's stream belongs to the device of `stream`.
inline bool same_device(const Producer& producer, StreamRef stream) noexcept {
    return producer.stream.device < 0 || producer.stream.device == stream.device().ordinal();
}

/// True if the producer is another stream than `stream`: an operation on `stream` must then wait for it, and it for the
/// operation.
inline bool needs_wait(const Producer& producer, StreamRef stream) noexcept {
    return !same_device(producer, stream) || StreamRef(producer.stream.handle, stream.device()) != stream;
}

/// The producer's stream, on its own device.
inline StreamRef stream_of(const Producer& producer, StreamRef stream) {
    return {producer.stream.handle,
            same_device(producer, stream) ? stream.device() : Device(producer.stream.device)};
}

/// The producers of one or two arrays, without duplicates.
class ProducerPair {
  public:
    void add(const Producer& producer) noexcept {
        if (count_ == 0 || !all_[0].stream.same_stream(producer.stream)) all_[count_++] = producer;
    }
    std::span<const Producer> get() const noexcept { return {all_, count_}; }

  private:
    Producer all_[2];
    std::size_t count_ = 0;
};

/// Makes later work on `stream` wait for the work enqueued so far on each producer, with one record and one wait for
/// each stream other than `stream`. Throws: CudaError; the caller must not launch then.
void wait_for_producers(StreamRef stream, std::span<const Producer> producers);

/// Makes later work on each producer wait for the work enqueued so far on `stream`, with one record and one wait for
/// each producer. If that fails, the host waits for `stream` before this throws CudaError, so that work is never left
/// unordered.
void order_producers_after(StreamRef stream, std::span<const Producer> producers);

}  // namespace bascule
