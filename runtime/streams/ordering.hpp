// Which streams wait for which: the launch for its producers, the producers for the launch.
// The rules are numbered in runtime/streams/ORDER.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Why an operation goes to its stream.
enum class StreamChoice : std::uint8_t { given, current, common_producer, device_default };

/// The first of these that exists: the stream given, the current one, the one that every array names.
inline StreamChoice how_chosen(const std::optional<StreamRef>& given, const std::optional<StreamRef>& current,
                               std::optional<std::uint64_t> common_producer) noexcept {
    if (given) return StreamChoice::given;
    if (current) return StreamChoice::current;
    return common_producer ? StreamChoice::common_producer : StreamChoice::device_default;
}

/// The stream of an operation: the one given; else the current one; else, if every array names one and the
/// same, that; else the device's default stream.
inline StreamRef choose_stream(const std::optional<StreamRef>& given, const std::optional<StreamRef>& current,
                               std::optional<std::uint64_t> common_producer, Device device) noexcept {
    if (given) return *given;  // as how_chosen says
    if (current) return *current;
    if (common_producer) return {*common_producer, device};
    return StreamRef::device_default(device);
}

/// Whether the producer's stream is one of `stream`'s device.
inline bool same_device(const Producer& producer, StreamRef stream) noexcept {
    return producer.device < 0 || producer.device == stream.device().ordinal();
}

/// Whether an operation on `stream` waits for this producer, and the producer for it: unless it is that
/// stream.
inline bool needs_wait(const Producer& producer, StreamRef stream) noexcept {
    return !same_device(producer, stream) || StreamRef(producer.stream, stream.device()) != stream;
}

/// The producer's stream, on its own device.
inline StreamRef stream_of(const Producer& producer, StreamRef stream) {
    return {producer.stream, same_device(producer, stream) ? stream.device() : Device(producer.device)};
}

/// The streams of one or two arrays, equal ones once.
class ProducerPair {
  public:
    void add(const Producer& producer) noexcept {
        if (count_ == 0 || !all_[0].same_stream(producer)) all_[count_++] = producer;
    }
    std::span<const Producer> get() const noexcept { return {all_, count_}; }

  private:
    Producer all_[2];
    std::size_t count_ = 0;
};

/// Later work on `stream` waits for what each producer has enqueued so far: one record and one wait for each stream
/// other than `stream`. Throws: CudaError; nothing was launched then.
void wait_for_producers(StreamRef stream, std::span<const Producer> producers);

/// Later work on each producer waits for what `stream` has enqueued so far: one record, and one wait for each producer.
/// When that fails the host waits for `stream` before this throws CudaError: work is never left unordered.
void order_producers_after(StreamRef stream, std::span<const Producer> producers);

}  // namespace bascule
