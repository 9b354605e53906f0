#include "checks/checks.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "machine/observer.hpp"
#include "machine/warp.hpp"
#include "report/json.hpp"

namespace emulated::checks {
namespace {

struct Row {
    Check check;
    std::string_view name;
    bool in_all;
};
constexpr Row rows[] = {
#define CHECK(name, bit, in_all, finds) {Check::name, #name, in_all},
    BASCULE_CHECKS(CHECK)
#undef CHECK
};

// The enumerator of `restrict` has an underscore, because the word is a keyword of some compilers.
constexpr std::string_view public_name(std::string_view name) noexcept {
    return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

/// A finding and how often it was made.
struct Counted {
    LaunchName launch;
    Finding finding;
    std::uint64_t threads = 0;
};

struct Found {
    std::mutex mutex;  // guards the others
    std::vector<Counted> all;
    std::map<std::tuple<std::string, Check, std::uint32_t, std::uint32_t>, std::size_t> index;
    Describe describe = nullptr;
    BaseOf base_of = nullptr;

    void clear() {
        all.clear();
        index.clear();
    }
};

Found& found() {
    static Found& made = *new Found;  // launches may run until the very end
    return made;
}

constexpr std::size_t most_findings = 1000;

std::string triple(const machine::Dim3& value) {
    return fmt::format("({},{},{})", value.x, value.y, value.z);
}

std::string place_of(const Deed& deed) {
    if (deed.line == 0) return fmt::format("PTX line {}", deed.ptx_line);
    return fmt::format("line {} of {}", deed.line, deed.file.empty() ? "the source" : deed.file);
}

std::string caller_of(const Deed& deed) {
    if (deed.caller.line == 0) return "";
    return fmt::format("\n  called from line {} of {}", deed.caller.line,
                       deed.caller.file.empty() ? "the source" : deed.caller.file);
}

// "element 12 of the array 'x' ...", for an address in an array of the launch.
std::string element_of(const LaunchName& launch, std::uint64_t address) {
    for (const ArrayArgument& each : launch.arrays) {
        if (each.itemsize == 0 || address - each.first >= each.bytes) continue;
        return fmt::format(", element {} of {}", (address - each.first) / each.itemsize,
                           describe_array(each));
    }
    return "";
}

std::string text_of(const Counted& counted, Describe describe) {
    const Finding& finding = counted.finding;
    const Deed& first = finding.first;
    std::string text = fmt::format("{}: kernel '{}' {} at {}", name_of(finding.check), counted.launch.kernel,
                                   first.what, place_of(first));
    text += caller_of(first);
    if (finding.address != 0 && finding.space == "shared") {
        text += fmt::format("\n  byte {} of shared memory", finding.address);
    } else if (finding.address != 0) {
        text += fmt::format("\n  address {:#x}", finding.address);
        if (finding.space == "global" && describe != nullptr)
            text +=
                ": " + describe(finding.address, finding.bytes) + element_of(counted.launch, finding.address);
    }
    text += fmt::format("\n  in block {}, thread {}", triple(first.block), triple(first.thread));
    if (finding.other) {
        const Deed& other = *finding.other;
        text += fmt::format("\n  block {}, thread {} {} at {}", triple(other.block), triple(other.thread),
                            other.what, place_of(other));
        text += caller_of(other);
    }
    if (counted.threads > 1) {
        text += fmt::format("\n  {} other {} did the same", counted.threads - 1,
                            counted.threads == 2 ? "thread" : "threads");
    }
    if (!finding.advice.empty()) text += "\n  " + finding.advice;
    return text;
}

nlohmann::json record_of(const Deed& deed) {
    const auto list = [](const machine::Dim3& value) {
        return nlohmann::json::array({value.x, value.y, value.z});
    };
    return {{"what", deed.what},
            {"file", deed.file},
            {"line", deed.line},
            {"ptx_line", deed.ptx_line},
            {"block", list(deed.block)},
            {"thread", list(deed.thread)},
            {"caller_file", deed.caller.file},
            {"caller_line", deed.caller.line}};
}

/// The launch's arguments that point into the allocation of the finding's access; 0 for the others.
std::vector<std::uint64_t> arguments_into(const Counted& counted, BaseOf base_of) {
    std::vector<std::uint64_t> arguments = counted.launch.arguments;
    const bool is_global = counted.finding.space == "global" && base_of != nullptr;
    const std::uint64_t base = is_global ? base_of(counted.finding.address) : 0;
    for (std::uint64_t& each : arguments) {
        if (base == 0 || each == 0 || base_of(each) != base) each = 0;
    }
    return arguments;
}

}  // namespace

std::string_view names() noexcept {
    static const std::string& made = *new std::string([] {
        std::string text;
        for (const Row& row : rows) text += (text.empty() ? "" : ",") + std::string(public_name(row.name));
        return text;
    }());
    return made;
}

std::optional<Checks> find(std::string_view name) noexcept {
    Checks all = 0;
    for (const Row& row : rows) {
        if (public_name(row.name) == name) return static_cast<Checks>(row.check);
        if (row.in_all) all |= static_cast<Checks>(row.check);
    }
    if (name == "all") return all;
    return name == "memory" ? std::optional<Checks>(0) : std::nullopt;
}

std::optional<Checks> parse(std::string_view list) noexcept {
    Checks all = 0;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), name.size() + 1));
        const auto known = find(name);
        if (!known) return std::nullopt;
        all |= *known;
    }
    return all;
}

std::string_view name_of(Check check) noexcept {
    return public_name(std::ranges::find(rows, check, &Row::check)->name);
}

std::string describe_array(const ArrayArgument& array) {
    const std::string name = array.name.empty() ? "" : fmt::format(" '{}'", array.name);
    return fmt::format("the array{} (argument {}, {} bytes)", name, array.parameter + 1, array.bytes);
}

ThreadPlace thread_place(const machine::Execution& execution, unsigned lane) {
    return {execution.pc, execution.thread(lane), execution.lanes.block->index};
}

Deed deed_of(const program::Code& code, const ThreadPlace& place, const machine::Dim3& block_shape,
             std::string what) {
    Deed made;
    static_cast<machine::FaultPlace&>(made) = machine::place_of(code, block_shape, place.pc, place.thread);
    made.block = place.block;
    made.what = std::move(what);
    return made;
}

Deed deed_of(const machine::Execution& execution, unsigned lane, const machine::Dim3& block_shape) {
    return deed_of(execution.code, thread_place(execution, lane), block_shape, "");
}

void report(const LaunchName& launch, Finding finding, std::uint64_t threads) {
    Found& all = found();
    const std::lock_guard lock(all.mutex);
    const auto [at, is_new] =
        all.index.try_emplace({launch.kernel, finding.check, finding.pc, finding.other_pc}, all.all.size());
    if (!is_new) {
        all.all[at->second].threads += threads;
    } else if (all.all.size() < most_findings) {
        all.all.push_back({launch, std::move(finding), threads});
    } else {
        all.index.erase(at);
    }
}

std::vector<std::string> take_findings(bool keep) {
    Found& all = found();
    const std::lock_guard lock(all.mutex);
    std::vector<std::string> made;
    for (const Counted& each : all.all) {
        nlohmann::json record = record_of(each.finding.first);
        record["kind"] = name_of(each.finding.check);
        record["kernel"] = each.launch.kernel;
        record["count"] = each.threads;
        record["address"] = each.finding.address;
        record["bytes"] = each.finding.bytes;
        record["space"] = each.finding.space;
        record["advice"] = each.finding.advice;
        record["stream"] = each.launch.stream;
        record["site"] = each.launch.site;
        record["arguments"] = arguments_into(each, all.base_of);
        record["other"] = each.finding.other ? record_of(*each.finding.other) : nlohmann::json();
        record["report"] = text_of(each, all.describe);
        made.push_back(report::to_text(record));
    }
    if (!keep) all.clear();
    return made;
}

std::vector<std::string> take_reports() {
    Found& all = found();
    const std::lock_guard lock(all.mutex);
    std::vector<std::string> made;
    for (const Counted& each : all.all) made.push_back(text_of(each, all.describe));
    all.clear();
    return made;
}

void describe_with(Describe describe, BaseOf base_of) noexcept {
    found().describe = describe;
    found().base_of = base_of;
}

}  // namespace emulated::checks
