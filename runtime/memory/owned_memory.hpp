// Memory that an object owns, and when its end gives the memory back: after all work that may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Memory that the driver or a pool of ours has given, and that the destructor gives back.
///
/// Work of Bascule's keeps the memory until it is done, or comes before what is enqueued later on the stream `order`. Of code
/// that got the address Bascule knows less. Memory that was shared is given back once these streams are done with what they
/// have when the last owner goes: the device's legacy default stream, and with it every blocking stream, and the
/// streams that were named. Thread-safe as memory is: order your accesses.
class OwnedMemory {
  public:
    virtual ~OwnedMemory() = default;
    OwnedMemory(OwnedMemory&&) = delete;

    /// As the driver gave it.
    std::uint64_t address() const noexcept { return address_; }
    /// Other code has the address: work that is not known here may use the memory from now on.
    void share() noexcept {
        shared_.store(true, std::memory_order_relaxed);
        was_shared_.store(true, std::memory_order_relaxed);
    }
    /// The same, and that work may be on `stream`, whose handle is good as long as `keeper` lives; null for a stream that is
    /// never destroyed. Throws where there is no memory.
    void share(StreamRef stream, std::shared_ptr<void> keeper);
    /// Work that is not ordered with the memory's stream may use it from now on; the host waits where it must. Throws:
    /// CudaError, also during a capture.
    virtual void settle() {}
    /// The stream in whose order the calling thread gives it back. Null: at once.
    virtual const StreamRef* order() const noexcept { return nullptr; }

    /// Takes what was made with `new`.
    static std::shared_ptr<OwnedMemory> owned(OwnedMemory* made) { return {made, &end_use}; }

  protected:
    OwnedMemory(std::uint64_t address, std::size_t bytes, Device device) noexcept
        : address_(address), bytes_(bytes), device_(device) {}

    /// Whether other code has had the address.
    bool was_shared() const noexcept { return was_shared_.load(std::memory_order_relaxed); }

    std::uint64_t address_;
    const std::size_t bytes_;
    const Device device_;

  private:
    struct User {
        StreamRef stream;
        std::shared_ptr<void> keeper;
    };
    static void end_use(OwnedMemory* memory) noexcept;
    static void end_uses(void* const* memory, std::size_t count) noexcept;
    void keep_for(StreamRef stream) noexcept;

    std::atomic<bool> shared_{false};  // and nothing waits for its users yet
    std::atomic<bool> was_shared_{false};
    std::atomic<std::size_t> uses_{0};  // by streams, once it has no owner
    std::mutex mutex_;                  // of what follows, as long as it has owners
    std::vector<User> users_;
};

}  // namespace bascule
