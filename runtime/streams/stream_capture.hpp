// The effects of stream capture on order, owners, loading and waiting: rule 13 of runtime/streams/ORDER.md.
#pragma once

#include <string>

#include <bascule/runtime/streams/ordering.hpp>
#include <bascule/runtime/streams/owner.hpp>

namespace bascule {

/// A stream's capture, as the driver reports it.
struct CaptureState {
    enum class Status : std::uint8_t {
        none,
        active,
        invalidated,  ///< a forbidden operation broke it: it can only be ended
        implicit,     ///< the legacy default stream, unusable while a blocking stream is captured
    };
    Status status = Status::none;
    std::uint64_t id = 0;  ///< of an active capture; unique in the process
    bool operator==(const CaptureState&) const = default;
};

/// Queries the driver, also during a capture. The stream's context must be current. Throws: CudaError.
CaptureState capture_of(StreamRef stream);

/// True if the stream is being captured, or is the legacy default stream and using it would break another stream's
/// capture. False if the query fails. The stream's context must be current.
bool is_capturing(StreamRef stream) noexcept;

/// True if the stream is being captured, or if the query fails, for example because of another stream's capture. The
/// stream's context must be current.
bool may_be_captured(StreamRef stream) noexcept;

/// The needs of a graph in addition to its operations. Destroying the object releases the owners.
struct GraphNeeds {
    GraphNeeds() = default;
    ~GraphNeeds();
    GraphNeeds(GraphNeeds&&) = delete;

    std::vector<Producer> producers;  ///< streams outside the capture, without duplicates
    bool own_stream = false;          ///< arrays of the graph are bound to the capturing stream
    std::vector<Owner> owners;
    CodeList code;
};

/// While an object lives, operations on the streams of one capture are noted in `needs`. The same thread must begin and
/// end the capture.
class NotedCapture {
  public:
    NotedCapture(std::uint64_t id, GraphNeeds& needs);
    ~NotedCapture();
    NotedCapture(NotedCapture&&) = delete;

    /// Whether a bascule::Graph is being captured in any thread.
    static bool any() noexcept { return ongoing_.load(std::memory_order_relaxed) != 0; }
    /// Whether the calling thread is capturing a bascule::Graph.
    static bool in_this_thread() noexcept;

  private:
    friend class ProducersToOrder;
    friend bool keep_for_graph(StreamRef stream, const Owners& owners, const CodeRef* code) noexcept;

    inline static std::atomic<int> ongoing_{0};
};

/// The producers that an operation on `stream` is ordered with by event records and waits: usually all of them. While
/// `stream` is being captured into a bascule::Graph, producers outside the capture go to the graph instead, whose
/// launches are ordered with them. Queries the driver only if a producer is another stream.
class ProducersToOrder {
  public:
    /// Throws before anything is issued: ArgumentError if a producer is in a capture and `stream` is not in the same
    /// one, or if a producer is not in a capture of another library that `stream` is in (with the argument's name from
    /// `signature`, if given); CudaError.
    ProducersToOrder(StreamRef stream, std::span<const Producer> producers,
                     const Signature* signature = nullptr) {
        for (const Producer& producer : producers) {
            if (!needs_wait(producer, stream) && !NotedCapture::any()) continue;
            producers_ = producers;
            sort(stream, signature);
            return;
        }
    }
    /// Empty if all producers are `stream` itself.
    std::span<const Producer> get() const noexcept { return producers_; }
    /// True if the driver was queried and nothing is being captured on `stream`.
    bool found_no_capture() const noexcept { return found_no_capture_; }

  private:
    void sort(StreamRef stream, const Signature* signature);

    std::span<const Producer> producers_;
    bool found_no_capture_ = false;
    std::unique_ptr<std::vector<Producer>> inside_;  // null if producers_ contains all of them
};

/// If `stream` is being captured into a bascule::Graph, gives the owners and the code to the graph and returns true. If
/// the driver cannot tell, a graph that this thread captures takes them. Returns false otherwise, and also if memory
/// has run out. Call it only if NotedCapture::any().
bool keep_for_graph(StreamRef stream, const Owners& owners, const CodeRef* code = nullptr) noexcept;

/// Throws CudaError that begins with `what` if the host cannot wait for `stream` because the stream is being captured,
/// or because this thread is capturing a bascule::Graph.
void require_no_capture(StreamRef stream, const char* what);
/// The same for a wait for the whole device.
void require_no_capture(Device device, const char* what);

/// Throws CudaError if other code captures a stream of the device that Bascule knows. The driver would invalidate that
/// capture if the host waited for the device.
void require_no_capture_by_others(Device device);

/// Throws CudaError if a capture forbids loading code for a launch on `stream`.
void require_loadable(std::optional<StreamRef> stream, const std::string& kernel);

}  // namespace bascule
