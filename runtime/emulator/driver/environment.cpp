#include "driver/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "driver/device_limits.hpp"
#include "machine/registry.hpp"

namespace emulated::driver {
namespace {

std::string_view value_of(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? std::string_view() : text;
}

/// Parses the whole text as a number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
    const auto count = parse_number<std::uint64_t>(text);
    return count == 0 ? std::nullopt : count;
}

/// Parses a size such as 2GB, 1.5 GiB or 512 (bytes).
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 8> units = {{
        {"", 1},
        {"B", 1},
        {"KB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"KIB", 0x1p10},
        {"MIB", 0x1p20},
        {"GIB", 0x1p30},
    }};
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    std::string unit;
    for (const char letter : text.substr(static_cast<std::size_t>(end - text.data()))) {
        if (letter != ' ')
            unit += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
    }
    const auto* row = std::ranges::find(units, unit, &decltype(units)::value_type::first);
    if (row == units.end()) return std::nullopt;
    const double bytes = number * row->second;
    if (!(bytes >= 1 && bytes < 0x1p47)) return std::nullopt;  // a device's addresses have 47 bits
    return static_cast<std::uint64_t>(bytes);
}

std::optional<machine::TimeLimits> parse_seconds(std::string_view text) {
    machine::TimeLimits limits = machine::TimeLimits::unlimited();
    const auto seconds = parse_number<double>(text);
    if (!seconds || !(*seconds > 0)) return std::nullopt;
    if (*seconds < 1e9) limits.total = std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
    return limits;
}

/// Returns the text before the next comma and removes both from `list`.
std::string_view take_name(std::string_view& list) {
    const std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    return name;
}

/// Parses device numbers into a bit mask.
std::optional<std::uint32_t> parse_devices(std::string_view text) {
    std::uint32_t devices = 0;
    while (!text.empty()) {
        const std::string_view number = take_name(text);
        const std::optional<std::uint64_t> device = number == "0" ? 0 : parse_count(number);
        if (!device || *device >= most_devices) return std::nullopt;
        devices |= std::uint32_t{1} << *device;
    }
    return devices;
}

/// Parses "12.4" as 12040. Drivers before 12.0 are refused because they have no CUlibrary, which Bascule needs.
std::optional<int> parse_driver(std::string_view text) {
    const std::size_t dot = text.find('.');
    if (dot == text.npos) return std::nullopt;
    const auto major = parse_number<int>(text.substr(0, dot)),
               minor = parse_number<int>(text.substr(dot + 1));
    const bool known = major && minor && (*major == 12 || *major == 13) && *minor >= 0 && *minor <= 9;
    return known ? std::optional(1000 * *major + 10 * *minor) : std::nullopt;
}

std::optional<int> parse_architecture(std::string_view text) {
    for (const limits::Architecture& each : limits::architectures) {
        if (text == std::to_string(each.number)) return each.number;
    }
    if (text == "90a") return 90;  // every device of compute capability 9.0 also takes PTX for sm_90a
    return std::nullopt;
}

/// True if a variable of the CUDA driver itself is set to anything but 0.
bool is_set(const char* variable) {
    const std::string_view text = value_of(variable);
    return !text.empty() && text != "0";
}

std::optional<bool> parse_isa(std::string_view text) {
    return text == "baseline" || text == "avx2" ? std::optional(true) : std::nullopt;
}

std::optional<bool> parse_switch(std::string_view text) {
    if (text != "0" && text != "1") return std::nullopt;
    return text == "1";
}

}  // namespace

Environment read_environment() {
    Environment all;
    all.workers = std::max(1U, std::thread::hardware_concurrency());
    // Sets `target` to the parsed variable. If `parse` returns nothing, the complaint says what the value must be.
    const auto read = [&]<class Target>(const char* variable, Target& target, auto parse,
                                        const std::string& wanted) {
        const std::string_view text = value_of(variable);
        if (text.empty()) return;
        if (const auto value = parse(text)) {
            target = static_cast<Target>(*value);
        } else if (all.complaint.empty()) {
            all.complaint = fmt::format("{} is '{}'; it must be {}", variable, text.substr(0, 100), wanted);
        }
    };
    const auto at_most = [](std::uint64_t most) {
        return [most](std::string_view text) {
            const auto count = parse_count(text);
            return count && *count <= most ? count : std::nullopt;
        };
    };
    constexpr std::uint64_t most_workers = 1024;
    read("BASCULE_EMULATED_ARCH", all.architecture, parse_architecture, "one of: 75, 80, 86, 89, 90, 90a");
    read("BASCULE_EMULATED_BUSY", all.busy, parse_devices,
         "numbers of devices that refuse contexts, such as 1 or 0,2");
    read("BASCULE_EMULATED_CHECKS", all.checks, checks::parse,
         fmt::format("a list of: memory,{},all", checks::names()));
    read("BASCULE_EMULATED_CONCURRENT_MANAGED", all.concurrent_managed, parse_switch,
         "1 (the host may use managed memory while kernels run) or 0");
    read("BASCULE_EMULATED_DEVICES", all.devices, at_most(most_devices),
         fmt::format("a number from 1 to {}", most_devices));
    read("BASCULE_EMULATED_DRIVER", all.named_driver, parse_driver, "a version of CUDA from 12.0 to 13.9");
    read("BASCULE_EMULATED_EXECUTE", all.executes, parse_switch,
         "1 (kernels run) or 0 (they are launched and do not run)");
    read("BASCULE_EMULATED_FREES_WAIT", all.frees_wait, parse_switch,
         "1 (cuMemFree waits for the device's work) or 0 (it frees at once)");
    read("BASCULE_EMULATED_LAZY_LOADING", all.loads_lazily, parse_switch,
         "1 (kernels are loaded at their first use) or 0 (with their module)");
    read("BASCULE_EMULATED_MEMORY", all.memory_bytes, parse_bytes,
         "a size, such as 2GB, 512MiB or a number of bytes");
    read("BASCULE_EMULATED_MEMORY_POOLS", all.has_memory_pools, parse_switch,
         "1 (devices have memory pools) or 0 (they have none, as some virtual GPUs)");
    read("BASCULE_EMULATED_PAGEABLE", all.pageable, parse_switch,
         "1 (kernels reach any memory of the host, as with HMM) or 0");
    read("BASCULE_EMULATED_STALE_STREAMS", all.crashes_on_stale_streams, parse_switch,
         "1 (a call with the handle of a stream that was destroyed ends the process) or 0 (it is refused)");
    read("BASCULE_EMULATED_REPORTS", all.tells_reports, parse_switch,
         "1 (reports that the program does not ask for are written to stderr) or 0");
    read("BASCULE_EMULATED_SCHEDULE", all.schedule, streams::schedule_from,
         fmt::format("one of: {}", streams::schedule_names));
    read("BASCULE_EMULATED_TIMEOUT", all.time_limits, parse_seconds, "a number of seconds above 0, or inf");
    read("BASCULE_EMULATED_WORKERS", all.workers, at_most(most_workers),
         fmt::format("a number of threads from 1 to {}", most_workers));
    bool names_isa = false;  // checked only; the registry of handlers reads it again
    read("BASCULE_EMULATED_ISA", names_isa, parse_isa,
         "avx2 (do not use AVX-512), baseline (do not use AVX2 either), or unset");
    if (all.complaint.empty()) all.complaint = machine::why_no_instruction_set();
    all.waits_for_launches = is_set("CUDA_LAUNCH_BLOCKING");
    all.compiles_ptx = all.named_driver == 0 || !is_set("CUDA_DISABLE_PTX_JIT");
    return all;
}

}  // namespace emulated::driver
