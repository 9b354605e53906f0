// Memory that is freed only after all work that may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Memory from the driver or from Bascule's pool, which the destructor frees.
///
/// Work that Bascule enqueues either keeps the memory until it is done, or is done before later work on the stream
/// `order`, where the memory is freed. Bascule cannot see work of other code that got the address. When the last owner
/// of shared memory releases it, the memory is therefore kept until these streams have done their pending work: the
/// device's legacy default stream, and so every blocking stream, and the streams passed to `share`. As thread-safe as
/// memory: order your accesses.
class OwnedMemory {
  public:
    virtual ~OwnedMemory() = default;
    OwnedMemory(OwnedMemory&&) = delete;

    /// The address that the driver returned.
    std::uint64_t address() const noexcept { return address_; }
    /// Call this when other code gets the address: unknown work may use the memory from now on.
    void share() noexcept {
        shared_.store(true, std::memory_order_relaxed);
        was_shared_.store(true, std::memory_order_relaxed);
    }
    /// The same, if that work may be on `stream`. The stream's handle stays valid while `keeper` lives; `keeper` is
    /// null for a stream that is never destroyed. Throws std::bad_alloc.
    void share(StreamRef stream, std::shared_ptr<void> keeper);
    /// Call this before work that is not ordered with the memory's stream. Waits on the host for the allocation if
    /// necessary. Throws: CudaError, also during a capture.
    virtual void wait_for_allocation() {}
    /// The stream in whose order the calling thread frees the memory. Null: freed at once.
    virtual const StreamRef* order() const noexcept { return nullptr; }

    /// Takes an object made with `new` and returns its owner. After the last owner, it is deleted when no stream can
    /// use the memory any more.
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

    std::atomic<bool> shared_{false};  // shared, and the streams of other code have not been waited for
    std::atomic<bool> was_shared_{false};
    std::atomic<std::size_t> uses_{0};  // streams that still keep it after the last owner released it
    std::mutex mutex_;                  // guards users_ while there are owners
    std::vector<User> users_;
};

}  // namespace bascule
