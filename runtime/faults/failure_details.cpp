#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/launch_history.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_places = 1024;

struct UserPlace {
    std::string canonical;
    Source source;
};

struct Places {
    std::mutex mutex;
    std::deque<UserPlace> newest_first;
};

Places& places() { return never_destroyed<Places>(); }

std::string_view without_indentation(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
}

/// The ordinal of the current context's device; 0 if it is unknown.
int current_ordinal(const Driver& driver) {
    CUdevice number = 0;
    if (driver.api().cuCtxGetDevice(&number) != CUDA_SUCCESS) return 0;
    for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
        CUdevice candidate = 0;
        if (driver.api().cuDeviceGet(&candidate, ordinal) == CUDA_SUCCESS && candidate == number)
            return ordinal;
    }
    return 0;
}

/// A line of advice on how to provide what the launch lacked.
std::string next_step(EmulatedFault::Lack lack) {
    if (lack == EmulatedFault::Lack::shared_bytes) {
        return "\nGive the size of the array in bytes: " +
               advice("it is the fourth entry of the brackets, kernel[grid, block, stream, shared_bytes].",
                      "LaunchConfig{.shared_bytes = ...}.");
    }
    if (lack == EmulatedFault::Lack::cooperation) {
        return "\nLaunch it cooperatively: " +
               advice("kernel[bascule.LaunchConfig(grid, block, cooperative=True)].",
                      "LaunchConfig{.cooperative = true}.");
    }
    return "";
}

/// The argument of a kernel that was None most recently, and the launch that it was read for.
struct NullArgument {
    std::string described;  // "Argument 2 'x'"
    const LaunchRing* ring = nullptr;
    std::uint32_t number = 0;  // of the launch, in the ring
};

struct NullArguments {
    std::mutex mutex;
    std::map<std::string, NullArgument> of_kernel;
};

NullArguments& null_arguments() { return never_destroyed<NullArguments>(); }

/// Whether the launch with the null argument may be the one that `blamed` describes. It may if it is being made, or if it is
/// not known to be done.
bool may_be_blamed(const NullArgument& null, const std::string& kernel, const std::string& blamed) {
    if (null.ring == nullptr || null.ring->next == null.number) return true;
    if (null.ring->next - null.number > null.ring->slots.size()) return false;
    const LaunchRing::Slot& slot = null.ring->slots[null.number % null.ring->slots.size()];
    const KernelNames* names = slot.kernel.load(std::memory_order_relaxed);
    return names != nullptr && names->name == kernel &&
           blamed.find(LaunchSite{slot.site.load(std::memory_order_relaxed)}.place()) != blamed.npos;
}

/// Names the argument that was None in the launch that `blamed` describes. Empty if there is no such argument.
std::string describe_nulls(const std::string& blamed) {
    NullArguments& all = null_arguments();
    const std::lock_guard lock(all.mutex);
    for (const auto& [kernel, null] : all.of_kernel) {
        if (blamed.find(fmt::format("kernel '{}'", kernel)) == blamed.npos ||
            !may_be_blamed(null, kernel, blamed))
            continue;
        return fmt::format("\n{} of a launch of '{}' was {}.", null.described, kernel,
                           advice("None, which is a null pointer: a function that returns nothing, such as "
                                  "x.fill(0), gives None",
                                  "null"));
    }
    return {};
}

FailureDetails details_of(const Driver& driver, CUresult code, std::string report) {
    // A failed bounds check traps after the kernel has written a record, which says more than the trap.
    BoundsReport bounds;
    if (code == CUDA_ERROR_ILLEGAL_INSTRUCTION || code == CUDA_ERROR_LAUNCH_FAILED) bounds = bounds_report();
    if (!bounds.text.empty()) report = std::move(bounds.text);
    FailureDetails details;
    details.report = with_user_places(std::move(report));
    if (!is_fault_of_kernel(code)) return details;
    const EmulatedFunctions* emulated = driver.emulated_functions();
    const EmulatedFault fault = emulated == nullptr ? EmulatedFault{} : emulated->newest_fault();
    details.launch = emulated == nullptr ? blame(current_ordinal(driver), bounds.kernel)
                                         : blame(current_ordinal(driver), fault);
    details.report += next_step(fault.lack);
    if (code == CUDA_ERROR_ILLEGAL_ADDRESS) details.report += describe_nulls(details.launch);
    return details;
}

}  // namespace

std::string with_user_places(std::string report) {
    static constexpr std::string_view lead = "line ";
    static constexpr std::string_view joint = " of ";
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    for (const UserPlace& place : all.newest_first) {
        for (std::size_t at = report.find(place.canonical); at != report.npos;
             at = report.find(place.canonical, at)) {
            const std::size_t end = at + place.canonical.size();
            const std::size_t begin = report.rfind(lead, at);
            const bool led =
                begin != report.npos && report.compare(at - joint.size(), joint.size(), joint) == 0;
            const int line =
                led ? line_in_text(place.source.text, std::atoi(report.c_str() + begin + lead.size())) : 0;
            const std::string mine =
                line > 0 ? fmt::format("{}:{}: {}", place.source.name, line + place.source.first_line - 1,
                                       without_indentation(source_line_of(place.source.text, line)))
                         : place.source.name;
            const std::size_t from = line > 0 ? begin : at;
            report.replace(from, end - from, mine);
            at = from + mine.size();
        }
    }
    // NVRTC names its own header with the directory that the process was in.
    static constexpr std::string_view header = "__nv_nvrtc_builtin_header.h";
    for (std::size_t at = report.find(header); at != report.npos; at = report.find(header, at)) {
        const std::size_t joined = report.rfind(joint, at);
        const std::size_t from =
            joined == report.npos || report.find('\n', joined) < at ? at : joined + joint.size();
        static constexpr std::string_view words = "a header that is built into NVRTC";
        report.replace(from, at + header.size() - from, words);
        at = from + words.size();
    }
    return report;
}

std::optional<Source> user_source(const std::string& compiled_name) {
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    const auto found = std::ranges::find(all.newest_first, compiled_name, &UserPlace::canonical);
    return found == all.newest_first.end() ? std::nullopt : std::optional(found->source);
}

void place_in_user_file(ThreadAction& action) {
    const std::optional<Source> source = user_source(action.file);
    const int line = source ? line_in_text(source->text, action.line) : 0;
    if (!source || line <= 0) return;
    action.source_line = without_indentation(source_line_of(source->text, line));
    action.file = source->name;
    action.line = line + source->first_line - 1;
}

void remember_place(const Source& source, const CompileOptions& options) {
    const std::string canonical = program_name(source, options);
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.newest_first, [&](const UserPlace& place) { return place.canonical == canonical; });
    all.newest_first.push_front({canonical, source});
    if (all.newest_first.size() > most_places) all.newest_first.pop_back();
}

void note_null_argument(const Signature& signature, int index) {
    const Parameter& parameter = signature.parameters[static_cast<std::size_t>(index)];
    NullArguments& all = null_arguments();
    const std::lock_guard lock(all.mutex);
    const LaunchRing* const ring = LaunchRing::of(thread_memory);
    all.of_kernel[signature.kernel] = {fmt::format("Argument {} '{}'", index + 1, parameter.name), ring,
                                       ring == nullptr ? 0 : ring->next};
}

void describe_failures() noexcept {
    Driver::set_failure_describer(&details_of);
    watch_arrays();
}

void watch_arrays() noexcept {
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return;
    constexpr std::uint32_t others = BASCULE_EMULATED_CHECK_RACES | BASCULE_EMULATED_CHECK_LEAKS;
    set_watch(Watch::arrays, (driver->emulated_functions()->checks() & ~others) != 0);
}

}  // namespace bascule
