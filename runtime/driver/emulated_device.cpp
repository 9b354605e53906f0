// Finds and loads the emulated device.
#include <filesystem>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {
namespace {

constexpr const char* emulator_soname = "libbascule_emulator.so";
constexpr const char* what = "emulated device";

template <typename Function>
void find(const DynamicLibrary& library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(
        library.require(name,
                        "the emulated device in {} lacks {}: it is of another version of Bascule. "
                        "Install Bascule again."));
}

/// Returns the text that `read` copies. `read` returns the text's length.
template <typename Read>
std::string text_of(const Read& read) {
    std::string text;
    // Another thread may replace the text with a longer one between two calls.
    for (std::size_t length = read(nullptr, 0);;) {
        text.resize(length + 1);
        length = read(text.data(), text.size());
        if (length >= text.size()) continue;
        text.resize(length);
        return text;
    }
}

void read_action(const nlohmann::json& record, ThreadAction& action) {
    record.at("what").get_to(action.what);
    record.at("file").get_to(action.file);
    record.at("line").get_to(action.line);
    record.at("block").get_to(action.block);
    record.at("thread").get_to(action.thread);
}

}  // namespace

std::string EmulatedFunctions::newest_report() const { return text_of(last_report); }

EmulatedFault EmulatedFunctions::newest_fault() const {
    using Lack = EmulatedFault::Lack;
    const auto record = nlohmann::json::parse(text_of(last_fault));
    const std::string lacks = record.value("lacks", "");
    return {.report = record.value("report", ""),
            .kernel = record.value("kernel", ""),
            .lack = lacks == "shared bytes"  ? Lack::shared_bytes
                    : lacks == "cooperation" ? Lack::cooperation
                                             : Lack::nothing,
            .stream = record.value("stream", std::uint64_t{0}),
            .site = record.value("site", std::uint64_t{0})};
}

std::vector<std::string> EmulatedFunctions::new_races() const {
    return nlohmann::json::parse(text_of(take_races)).get<std::vector<std::string>>();
}

std::string EmulatedFunctions::new_findings_as_json() const { return text_of(take_findings); }

std::vector<EmulatedFinding> EmulatedFunctions::new_findings() const {
    std::vector<EmulatedFinding> all;
    for (const nlohmann::json& record : nlohmann::json::parse(new_findings_as_json())) {
        EmulatedFinding& made = all.emplace_back();
        Finding& finding = made.finding;
        read_action(record, finding);
        record.at("kind").get_to(finding.kind);
        record.at("kernel").get_to(finding.kernel);
        record.at("count").get_to(finding.count);
        record.at("address").get_to(finding.address);
        record.at("bytes").get_to(finding.bytes);
        record.at("space").get_to(finding.space);
        record.at("advice").get_to(finding.advice);
        record.at("report").get_to(finding.report);
        if (!record.at("other").is_null()) read_action(record.at("other"), finding.other.emplace());
        made.is_inlined = record.at("caller_line") != 0;
        record.at("site").get_to(made.site);
        record.at("arguments").get_to(made.arguments);
    }
    return all;
}

std::string EmulatedFunctions::profile_so_far() const { return text_of(profile_read); }

std::vector<EmulatedLeak> EmulatedFunctions::live_allocations() const {
    std::vector<EmulatedLeak> all;
    for (const auto& record : nlohmann::json::parse(text_of(leaks))) {
        all.push_back({.kernel = record.value("kernel", ""),
                       .place = record.value("place", ""),
                       .count = record.value("count", std::uint64_t{0}),
                       .bytes = record.value("bytes", std::uint64_t{0})});
    }
    return all;
}

DynamicLibrary open_emulated_library() {
    std::vector<std::string> candidates;
    for (const std::filesystem::path& directory : own_places())
        candidates.push_back(directory / emulator_soname);
    candidates.emplace_back(emulator_soname);  // LD_LIBRARY_PATH and the system's directories
    return {what, candidates,
            "It is part of Bascule: install Bascule again, or put its directory on LD_LIBRARY_PATH."};
}

bool is_emulated_library(const DynamicLibrary& library) noexcept {
    return library.find("bascule_emulated_abi") != nullptr;
}

EmulatedFunctions find_emulated_functions(const DynamicLibrary& library) {
    EmulatedFunctions functions;
    find(library, "bascule_emulated_abi", functions.abi);
    if (const std::uint32_t version = functions.abi(); version != BASCULE_EMULATED_ABI) {
        throw LibraryError(fmt::format("the emulated device in {} has interface version {}, this Bascule "
                                       "needs {}. Install Bascule again.",
                                       library.path(), version, BASCULE_EMULATED_ABI),
                           {.library = what, .paths_tried = {library.path()}, .loader_message = {}});
    }
#define BASCULE_FIND(name) find(library, "bascule_emulated_" #name, functions.name);
    BASCULE_EMULATED_FUNCTIONS(BASCULE_FIND)
#undef BASCULE_FIND
    return functions;
}

}  // namespace bascule
