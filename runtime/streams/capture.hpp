// What stream capture means for order, owners, loading and waiting: rule 13 of runtime/streams/ORDER.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/ordering.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// A stream's capture, as the driver reports it.
struct CaptureState {
    enum class Status : std::uint8_t {
        none,
        active,
        invalidated,  ///< after something that captures do not allow: it can only be ended
        implicit,  ///< the legacy default stream, which cannot be used beside a capture of a blocking stream
    };
    Status status = Status::none;
    std::uint64_t id = 0;  ///< of an active one; unique in the process
    bool operator==(const CaptureState&) const = default;
};

/// Queries the driver, also during a capture. The stream's context is current. Throws: CudaError.
CaptureState capture_of(StreamRef stream);

/// Whether it is being captured, or cannot be used now because others are: to touch the legacy default stream would break a
/// capture. False where the driver does not say. The stream's context is current.
bool is_capturing(StreamRef stream) noexcept;

/// Whether it is being captured, or the driver does not say, because the capture of another stream forbids the question. The
/// stream's context is current.
bool may_be_captured(StreamRef stream) noexcept;

/// What a graph needs beside its operations. Its owners are released with it.
struct GraphNeeds {
    GraphNeeds() = default;
    ~GraphNeeds();
    GraphNeeds(GraphNeeds&&) = delete;

    std::vector<Producer> producers;  ///< streams outside the capture, each once
    bool own_stream = false;          ///< arrays of the graph are bound to the stream that captures it
    std::vector<Owner> owners;
    CodeList code;
};

/// While it lives, what happens on the streams of one capture is noted in `needs`. One thread begins and ends
/// it.
class NotedCapture {
  public:
    NotedCapture(std::uint64_t id, GraphNeeds& needs);
    ~NotedCapture();
    NotedCapture(NotedCapture&&) = delete;

    /// Whether any graph of ours is being captured.
    static bool any() noexcept { return ongoing_.load(std::memory_order_relaxed) != 0; }
    /// Whether the calling thread captures a graph of ours.
    static bool in_this_thread() noexcept;

  private:
    friend class ProducersToOrder;
    friend bool keep_for_graph(StreamRef stream, const Owners& owners, const CodeRef* code) noexcept;

    inline static std::atomic<int> ongoing_{0};
};

/// The producers that an operation on `stream` is ordered with by records and waits: usually all. While the stream
/// is being captured for a graph of ours, those outside the capture are given to the graph, which is ordered with
/// them at each of its launches. Queries the driver only when a producer is another stream.
class ProducersToOrder {
  public:
    /// Nothing has been issued when this throws: ArgumentError for a producer that is captured where `stream`
    /// is not, or the other way round, with the argument's name from `signature` if there is one; CudaError.
    ProducersToOrder(StreamRef stream, std::span<const Producer> producers,
                     const Signature* signature = nullptr) {
        for (const Producer& producer : producers) {
            if (!needs_wait(producer, stream) && !NotedCapture::any()) continue;
            producers_ = producers;
            sort(stream, signature);
            return;
        }
    }
    /// Empty where none of them is another stream.
    std::span<const Producer> get() const noexcept { return producers_; }
    /// Whether the driver was asked, and nothing is being captured on `stream`.
    bool found_no_capture() const noexcept { return found_no_capture_; }

  private:
    void sort(StreamRef stream, const Signature* signature);

    std::span<const Producer> producers_;
    bool found_no_capture_ = false;
    std::unique_ptr<std::vector<Producer>> inside_;  // null where producers_ are all of them
};

/// True when `stream` is being captured for a graph of ours, which has taken the owners then, and owns the code. Need
/// not be asked unless NotedCapture::any().
bool keep_for_graph(StreamRef stream, const Owners& owners, const CodeRef* code = nullptr) noexcept;

/// Throws CudaError that begins with `what` when the host cannot wait for `stream` because of a capture: of
/// the stream itself, or of a graph of ours by this thread.
void require_no_capture(StreamRef stream, const char* what);
/// The same when the host waits for more than a stream.
void require_no_capture(Device device, const char* what);

/// Throws CudaError when the host cannot wait for a device because other code captures one of its streams, as far as Bascule
/// knows the stream: the driver would invalidate the capture.
void require_no_capture_by_others(Device device);

/// Throws CudaError when code cannot be loaded for a launch on `stream` because of a capture.
void require_loadable(std::optional<StreamRef> stream, const std::string& kernel);

}  // namespace bascule
