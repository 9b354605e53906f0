// The last launches of each thread, so that the error of a later call can name the launch that caused it. Also the
// debugging mode that finds that launch exactly.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {

struct EmulatedFault;

/// The names of a kernel. Never freed, because a fault may be reported after the kernel is unloaded.
struct KernelNames {
    std::string name;            ///< with its template arguments: "ns::scale<float>"
    std::string lowered;         ///< the name in the image
    bool unknown_stack = false;  ///< the assembler could not determine the size, as with recursion

    /// Equal names share one object. Thread-safe.
    static const KernelNames* remember(const std::string& name, const std::string& lowered,
                                       bool unknown_stack = false);
};

/// The last launches of one thread. Only that thread writes them. Never freed.
struct LaunchRing {
    /// A read during a write may mix two launches. A report then guesses wrong, with no other harm. The names are never freed.
    struct Slot {
        std::atomic<const KernelNames*> kernel{nullptr};  ///< null: empty, or known to be done
        std::atomic<std::uint64_t> stream{0};
        std::atomic<KeptMark> order{0};
        std::atomic<std::uint32_t> site{0};
        std::atomic<int> ordinal{0};
    };
    std::array<Slot, 16> slots;
    std::uint32_t next = 0;
    std::uint64_t* next_site = nullptr;  ///< read by the emulated device; on a GPU it points to `unread_site`
    std::uint64_t unread_site = 0;
    bool taken = true;  ///< used by a thread that has not ended

    /// The ring of the calling thread, whose `memory` is passed. Null if out of memory.
    static LaunchRing* of(ThreadMemory& memory) noexcept;
};

/// Notes a launch of the calling thread. Made before the driver call. Costs a few stores and no lock.
class LaunchNote {
  public:
    /// Tells the emulated device which line launches next, so that its faults name it. `memory` belongs to this thread.
    LaunchNote(ThreadMemory& memory, LaunchSite site) noexcept : ring_(LaunchRing::of(memory)), site_(site) {
        if (ring_ != nullptr) *ring_->next_site = site.number;
    }
    /// Adds the launch to the history after the driver has accepted it.
    void accept(const KernelNames* kernel, StreamRef stream) const noexcept {
        if (ring_ == nullptr) return;
        constexpr auto relaxed = std::memory_order_relaxed;
        LaunchRing::Slot& slot = ring_->slots[ring_->next++ % ring_->slots.size()];
        slot.stream.store(stream.handle(), relaxed);
        slot.order.store(kept_so_far(), relaxed);
        slot.site.store(site_.number, relaxed);
        slot.ordinal.store(stream.device().ordinal(), relaxed);
        slot.kernel.store(kernel, relaxed);
    }

  private:
    LaunchRing* ring_;
    LaunchSite site_;
};

/// Sentences that name the launch that most likely lost the context of this device. The first call decides, later calls
/// return the same. `kernel` is the failed kernel's name, if known. Empty if nothing was launched.
std::string blame(int ordinal, const std::string& kernel);

/// The same on the emulated device, which knows the launch. Empty if the fault is not a kernel's.
std::string blame(int ordinal, const EmulatedFault& fault);

/// Forgets the decision for a device whose context works again.
void forget_blame(int ordinal) noexcept;

/// Whether CUDA_LAUNCH_BLOCKING makes the driver wait for each kernel, so that a launch returns its own kernel's error.
bool launches_wait() noexcept;

/// While an object lives, the calling thread waits for this launch, so errors are caused by it. Borrows its arguments.
class SuspectedLaunch {
  public:
    SuspectedLaunch(const KernelNames& kernel, StreamRef stream, LaunchSite site,
                    const ArgumentPack& args) noexcept;
    ~SuspectedLaunch();
    SuspectedLaunch(SuspectedLaunch&&) = delete;

    const KernelNames& kernel;
    const StreamRef stream;
    const LaunchSite site;
    const ArgumentPack& args;
};

/// Waits for the launch that was just made, so that errors are attributed to it. Does nothing during a capture, where
/// nothing runs. Throws: CudaError that names the launch and its arguments.
void wait_for_suspect(const KernelNames& kernel, StreamRef stream, LaunchSite site, const ArgumentPack& args);

/// Turns on or off that every launch synchronizes its stream, so that the launch raises the fault that it causes. Off
/// by default; applies to the whole process. Returns the previous setting.
inline bool synchronise_launches(bool on) noexcept { return set_watch(Watch::synchronise, on); }

}  // namespace bascule
