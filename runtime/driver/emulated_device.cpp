// Finds and loads the emulated device.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/own_places.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {
namespace {

constexpr const char* emulator_soname = "libbascule_emulator.so";
constexpr const char* what = "emulated device";

template <typename Function>
void find(const DynamicLibrary& library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(library.find(name));
    if (function != nullptr) return;
    throw LibraryError(fmt::format("the emulated device in {} lacks {}: it is of another version of Bascule. "
                                   "Install Bascule again.",
                                   library.path(), name),
                       {.library = what, .paths_tried = {library.path()}, .loader_message = {}});
}

/// The text that `read` copies and returns the length of.
template <typename Read>
std::string text_of(const Read& read) {
    std::string text(read(nullptr, 0), '\0');
    // Another thread's fault may have replaced it meanwhile: what fits is taken.
    const std::size_t length = read(text.data(), text.size() + 1);
    text.resize(std::min(length, text.size()));
    return text;
}

}  // namespace

std::string EmulatedFunctions::newest_report() const { return text_of(last_report); }

EmulatedFault EmulatedFunctions::newest_fault() const {
    EmulatedFault fault = {};
    fault.report =
        text_of([&](char* text, std::size_t capacity) { return last_fault(&fault, text, capacity); });
    return fault;
}

std::vector<std::string> emulated_library_candidates() {
    std::vector<std::string> candidates;
    for (const std::filesystem::path& directory : own_places())
        candidates.push_back(directory / emulator_soname);
    candidates.emplace_back(emulator_soname);  // LD_LIBRARY_PATH and the system's directories
    return candidates;
}

DynamicLibrary open_emulated_library() {
    return {what, emulated_library_candidates(),
            "It is part of Bascule: install Bascule again, or put its directory on LD_LIBRARY_PATH."};
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
    find(library, "bascule_emulated_last_report", functions.last_report);
    find(library, "bascule_emulated_last_fault", functions.last_fault);
    find(library, "bascule_emulated_next_site", functions.next_site);
    find(library, "bascule_emulated_trace", functions.trace);
    find(library, "bascule_emulated_trace_read", functions.trace_read);
    find(library, "bascule_emulated_next_timer", functions.next_timer);
    find(library, "bascule_emulated_take_times", functions.take_times);
    find(library, "bascule_emulated_name_allocation", functions.name_allocation);
    find(library, "bascule_emulated_bookkeeping", functions.bookkeeping);
    find(library, "bascule_emulated_set_checks", functions.set_checks);
    find(library, "bascule_emulated_checks", functions.checks);
    find(library, "bascule_emulated_set_site", functions.set_site);
    find(library, "bascule_emulated_set_interrupt", functions.set_interrupt);
    find(library, "bascule_emulated_set_print", functions.set_print);
    find(library, "bascule_emulated_end", functions.end);
    find(library, "bascule_emulated_reset", functions.reset);
    find(library, "bascule_emulated_take_races", functions.take_races);
    find(library, "bascule_emulated_race_statistics", functions.race_statistics);
    find(library, "bascule_emulated_call_count", functions.call_count);
    return functions;
}

}  // namespace bascule
