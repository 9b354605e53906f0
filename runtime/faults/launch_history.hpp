// The last launches of every thread, so that an error in a later call can name the launch that caused it; and
// the debugging mode that finds that launch exactly.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/watches.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {

struct EmulatedFault;

/// The names of a kernel, never freed: a fault may be reported when the kernel is gone.
struct KernelNames {
    std::string name;     ///< with its template arguments: "ns::scale<float>"
    std::string lowered;  ///< as the image calls it
    bool unknown_stack =
        false;  ///< the assembler could not tell how much it needs, because of a recursion for example

    /// Equal names are one object. Thread-safe.
    static const KernelNames* remember(const std::string& name, const std::string& lowered,
                                       bool unknown_stack = false);
};

/// The last launches of one thread, which alone writes them. Never freed.
struct LaunchRing {
    /// When it is read while it is written it mixes two launches: then a report guesses wrong, nothing worse.
    /// The names are never freed.
    struct Slot {
        std::atomic<const KernelNames*> kernel{nullptr};  ///< null: none, or known to be done
        std::atomic<std::uint64_t> stream{0};
        std::atomic<KeptMark> order{0};
        std::atomic<std::uint32_t> site{0};
        std::atomic<int> ordinal{0};
    };
    std::array<Slot, 16> slots;
    std::uint32_t next = 0;
    std::uint64_t* next_site = nullptr;  ///< the emulated device reads it; on a GPU it is `unread_site`
    std::uint64_t unread_site = 0;
    bool taken = true;  ///< by a thread that has not ended

    /// The calling thread's, whose memory it is given. Null without memory.
    static LaunchRing* of(ThreadMemory& memory) noexcept;
};

/// A launch by the calling thread, from before the driver is called. A few stores, no lock.
class LaunchNote {
  public:
    /// The emulated device learns which line launches next, so that its faults name it. `memory` is the thread's.
    LaunchNote(ThreadMemory& memory, LaunchSite site) noexcept : ring_(LaunchRing::of(memory)), site_(site) {
        if (ring_ != nullptr) *ring_->next_site = site.number;
    }
    /// Remembers the launch: the driver has accepted it.
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

/// Which launch most likely lost the context of this device, as sentences: decided by the first call, and then
/// kept. `kernel` is its name, where that is known. Empty when nothing was launched.
std::string blame(int ordinal, const std::string& kernel);

/// The same on the emulated device, which knows the launch. Empty where the fault is not a kernel's.
std::string blame(int ordinal, const EmulatedFault& fault);

/// The context of this device goes on: a later loss is another launch's.
void forget_blame(int ordinal) noexcept;

/// Whether CUDA_LAUNCH_BLOCKING makes the driver wait for each kernel, so that a launch returns its own kernel's error.
bool launches_wait() noexcept;

/// While it lives, the launch that the calling thread waits for: an error is caused by it. Borrows what it is given.
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

/// Waits for a launch that was just made: an error is caused by this launch. Not on a stream that is
/// being captured, where nothing runs. Throws: CudaError that names the launch and its arguments.
void wait_for_suspect(const KernelNames& kernel, StreamRef stream, LaunchSite site, const ArgumentPack& args);

/// Whether every launch is followed by a synchronisation of its stream, so that a fault is raised by the
/// launch that caused it. Off at first; counts for the whole process. Returns what it was.
inline bool synchronise_launches(bool on) noexcept { return set_watch(Watch::synchronise, on); }

}  // namespace bascule
