// Each thread has a ring that only it writes. A thread that meets a fault reads all rings.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_listed = 4;
constexpr auto relaxed = std::memory_order_relaxed;

using LaunchSlot = LaunchRing::Slot;

struct HistoryRegistry {
    std::mutex mutex;
    std::vector<LaunchRing*> rings;       // never freed; reused by another thread after the thread's end
    std::map<int, std::string> verdicts;  // by device
};

HistoryRegistry& history_registry() { return never_destroyed<HistoryRegistry>(); }

/// Removes launches up to `mark`: a synchronization that began then has succeeded, so they cannot have failed.
template <class Matches>
void forget(KeptMark mark, const Matches& matches) noexcept {
    const std::lock_guard lock(history_registry().mutex);
    for (LaunchRing* ring : history_registry().rings) {
        for (LaunchSlot& slot : ring->slots) {
            if (slot.kernel.load(relaxed) != nullptr && slot.order.load(relaxed) <= mark && matches(slot)) {
                slot.kernel.store(nullptr, relaxed);
            }
        }
    }
}

void forget_launches(StreamRef stream, KeptMark mark) noexcept {
    const LaunchRing* const mine = thread_memory.history;
    forget(mark, [&](const LaunchSlot& slot) {
        return slot.stream.load(relaxed) == stream.handle() &&
               slot.ordinal.load(relaxed) == stream.device().ordinal() &&
               (stream.handle() != 2 || (mine != nullptr && &slot >= mine->slots.data() &&
                                         &slot < mine->slots.data() + mine->slots.size()));
    });
}

void forget_launches(Device device, KeptMark mark) noexcept {
    forget(mark, [&](const LaunchSlot& slot) { return slot.ordinal.load(relaxed) == device.ordinal(); });
}

constexpr StreamObserver fault_observer{
    .stream_finished =
        [](StreamRef stream, KeptMark mark, bool lost) noexcept {
            if (!lost) forget_launches(stream, mark);
        },
    .device_finished =
        [](Device device, KeptMark mark, bool lost) noexcept {
            if (!lost) forget_launches(device, mark);
        },
};

struct OwnRing {
    LaunchRing* ring = nullptr;
    ~OwnRing() {
        if (ring == nullptr) return;
        const std::lock_guard lock(history_registry().mutex);
        ring->taken = false;
    }
};

[[gnu::cold, gnu::noinline]] LaunchRing* take_ring() noexcept {
    thread_local OwnRing own;
    try {
        const EmulatedFunctions* emulated = Driver::get().emulated_functions();
        const std::lock_guard lock(history_registry().mutex);
        auto& rings = history_registry().rings;
        const auto idle = std::ranges::find(rings, false, &LaunchRing::taken);
        if (idle != rings.end()) {
            own.ring = *idle;
            own.ring->taken = true;
        } else {
            rings.reserve(rings.size() + 1);
            own.ring = rings.emplace_back(new LaunchRing);
        }
        set_stream_observer(ObservingPart::faults, fault_observer);
        own.ring->next_site = emulated == nullptr ? &own.ring->unread_site : emulated->next_site();
    } catch (...) {  // out of memory: this thread's launches are not recorded
    }
    return own.ring;
}

constinit thread_local const SuspectedLaunch* suspect = nullptr;

/// One launch in a report.
struct Candidate {
    const KernelNames* kernel;
    std::uint64_t stream;
    KeptMark order;
    std::uint32_t site;
};

/// Launches on the device that are not known to be done, oldest first. The caller has locked the registry.
std::vector<Candidate> candidates_of(int ordinal) {
    std::vector<Candidate> found;
    for (const LaunchRing* ring : history_registry().rings) {
        for (const LaunchSlot& slot : ring->slots) {
            const KernelNames* kernel = slot.kernel.load(relaxed);
            if (kernel == nullptr || slot.ordinal.load(relaxed) != ordinal) continue;
            found.push_back(
                {kernel, slot.stream.load(relaxed), slot.order.load(relaxed), slot.site.load(relaxed)});
        }
    }
    std::ranges::stable_sort(found, {}, &Candidate::order);
    return found;
}

std::string describe_launch(const std::string& kernel, std::uint64_t stream, const std::string& place) {
    return fmt::format("kernel '{}' on {}{}", kernel, name_of_stream(stream),
                       place.empty() ? "" : ", launched at " + place);
}

std::string describe_suspect(const SuspectedLaunch& launch) {
    return fmt::format("{}, with the arguments {}",
                       describe_launch(launch.kernel.name, launch.stream.handle(), launch.site.place()),
                       to_string(launch.args));
}

/// Advice if a kernel may have needed a larger stack, else empty.
std::string advice_about_stack(const std::vector<Candidate>& candidates) {
    const auto deep =
        std::ranges::find_if(candidates, [](const Candidate& each) { return each.kernel->unknown_stack; });
    if (deep == candidates.end()) return {};
    return fmt::format(
        "\nThe compiler could not tell how much stack kernel '{}' needs: it may be more than {}, which can be "
        "raised before the launch.",
        deep->kernel->name, advice("the device's stack_bytes", "Device::stack_bytes"));
}

/// Names the launches that are not known to be done.
std::string verdict(int ordinal, const std::string& kernel) {
    std::vector<Candidate> candidates = candidates_of(ordinal);
    if (!kernel.empty()) {
        std::erase_if(candidates, [&](const Candidate& each) {
            return each.kernel->name != kernel && each.kernel->lowered != kernel;
        });
    }
    if (candidates.empty()) return {};
    std::vector<std::string> texts;
    for (const Candidate& each : candidates) {
        std::string text = describe_launch(each.kernel->name, each.stream, LaunchSite{each.site}.place());
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
    }
    if (texts.size() == 1)
        return fmt::format("It was most likely {}.{}", texts[0], advice_about_stack(candidates));
    std::string text =
        fmt::format("It was most likely the first of these, which had not been waited for:\n  {}", texts[0]);
    for (std::size_t i = 1; i < texts.size() && i < most_listed; ++i) text += "\n  " + texts[i];
    if (texts.size() > most_listed) text += fmt::format("\n  and {} more", texts.size() - most_listed);
    return text + "\n" + advice("bascule.debug(sync=True)", "bascule::synchronise_launches(true)") +
           " finds out which." + advice_about_stack(candidates);
}

/// Returns the first decision for a device. `judge` runs with the registry locked.
template <class Judge>
std::string decide(int ordinal, const Judge& judge) {
    HistoryRegistry& all = history_registry();
    const std::lock_guard lock(all.mutex);
    const auto known = all.verdicts.find(ordinal);
    return known != all.verdicts.end() ? known->second : all.verdicts.emplace(ordinal, judge()).first->second;
}

}  // namespace

const KernelNames* KernelNames::remember(const std::string& name, const std::string& lowered,
                                         bool unknown_stack) {
    static std::mutex& mutex = *new std::mutex;
    static auto& known = *new std::map<std::pair<std::string, std::string>, KernelNames>;
    const std::lock_guard lock(mutex);
    return &known.emplace(std::pair(name, lowered), KernelNames{name, lowered, unknown_stack}).first->second;
}

LaunchRing* LaunchRing::of(ThreadMemory& memory) noexcept {
    if (memory.history == nullptr) [[unlikely]]
        memory.history = take_ring();
    return memory.history;
}

std::string blame(int ordinal, const std::string& kernel) {
    const std::string caught = suspect == nullptr ? "" : describe_suspect(*suspect);  // takes the lock itself
    return decide(ordinal, [&] {
        return caught.empty() ? verdict(ordinal, kernel) : fmt::format("It was {}.", caught);
    });
}

std::string blame(int ordinal, const EmulatedFault& fault) {
    const bool caught =
        suspect != nullptr && suspect->site.number == fault.site && suspect->stream.handle() == fault.stream;
    const std::string arguments = caught ? to_string(suspect->args) : "";
    return decide(ordinal, [&]() -> std::string {
        if (fault.kernel.empty()) return "";
        return fmt::format("It was {}{}{}.",
                           describe_launch(fault.kernel, fault.stream,
                                           LaunchSite{static_cast<std::uint32_t>(fault.site)}.place()),
                           caught ? ", with the arguments " : "", arguments);
    });
}

void forget_blame(int ordinal) noexcept {
    const std::lock_guard lock(history_registry().mutex);
    history_registry().verdicts.erase(ordinal);
}

bool launches_wait() noexcept {
    static const bool asked = [] {
        const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
        return value != nullptr && *value != '\0' && std::string_view(value) != "0";
    }();
    return asked;
}

SuspectedLaunch::SuspectedLaunch(const KernelNames& the_kernel, StreamRef the_stream, LaunchSite the_site,
                                 const ArgumentPack& the_args) noexcept
    : kernel(the_kernel), stream(the_stream), site(the_site), args(the_args) {
    suspect = this;
}
SuspectedLaunch::~SuspectedLaunch() { suspect = nullptr; }

void wait_for_suspect(const KernelNames& kernel, StreamRef stream, LaunchSite site,
                      const ArgumentPack& args) {
    {
        const ContextGuard context(stream.context());
        if (is_capturing(stream)) return;
    }
    const SuspectedLaunch here(kernel, stream, site, args);
    stream.synchronize();
}

}  // namespace bascule
