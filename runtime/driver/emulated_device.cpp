// Finds and loads the emulated device.
#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <sstream>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {
namespace {

constexpr const char* emulator_soname = "libbascule_emulator.so";
constexpr const char* what = "emulated device";

#if defined(__x86_64__)
constexpr const char* multiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* multiarch = "aarch64-linux-gnu";
#else
constexpr const char* multiarch = "";
#endif

/// The directory of the binary or shared library that this code was linked into; empty when unknown.
std::filesystem::path own_directory() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&emulated_library_candidates), &info) == 0) return {};
    std::error_code ignored;
    // The main program is known by its argv[0], which means nothing once the working directory changed.
    std::filesystem::path binary = std::filesystem::canonical(info.dli_fname, ignored);
    if (ignored) binary = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return binary.parent_path();
}

/// The directories that the binary of this code was linked to search. The loader looks there too, but not
/// when a sanitizer stands between it and us; and here each is named when nothing is found.
std::vector<std::filesystem::path> own_run_path(const std::filesystem::path& origin) {
    Dl_info info{};
    link_map* map = nullptr;
    const void* here = reinterpret_cast<const void*>(&emulated_library_candidates);
    if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr)
        return {};
    const char* strings = nullptr;
    std::size_t offset = 0;
    bool found = false;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag != DT_RUNPATH && entry->d_tag != DT_RPATH) continue;
        offset = entry->d_un.d_val;
        found = true;
    }
    std::vector<std::filesystem::path> directories;
    if (!found || strings == nullptr) return directories;
    // glibc has made the table's address absolute; other loaders leave it as an offset.
    if (reinterpret_cast<std::uintptr_t>(strings) < map->l_addr) strings += map->l_addr;
    std::istringstream list(strings + offset);
    for (std::string directory; std::getline(list, directory, ':');) {
        constexpr std::string_view placeholder = "$ORIGIN";
        const bool relative = directory.rfind(placeholder, 0) == 0;
        if (relative) directory.replace(0, placeholder.size(), origin.string());
        if (!directory.empty()) directories.emplace_back(directory);
    }
    return directories;
}

template <typename Function>
void find(const DynamicLibrary& library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(library.find(name));
    if (function != nullptr) return;
    throw LibraryError(fmt::format("the emulated device in {} lacks {}: it is of another version of Bascule. "
                                   "Install Bascule again.",
                                   library.path(), name),
                       {.library = what, .paths_tried = {library.path()}, .loader_message = {}});
}

}  // namespace

std::string EmulatedFunctions::newest_report() const {
    std::string text(last_report(nullptr, 0), '\0');
    // Another thread's fault may have replaced it meanwhile: what fits is taken.
    const std::size_t length = last_report(text.data(), text.size() + 1);
    text.resize(std::min(length, text.size()));
    return text;
}

std::vector<std::string> emulated_library_candidates() {
    std::vector<std::string> candidates;
    if (const std::filesystem::path directory = own_directory(); !directory.empty()) {
        candidates.push_back(directory / emulator_soname);
        candidates.push_back((directory / ".." / "lib" / emulator_soname).lexically_normal());
        candidates.push_back((directory / ".." / "lib" / multiarch / emulator_soname).lexically_normal());
        for (const std::filesystem::path& listed : own_run_path(directory))
            candidates.push_back(listed / emulator_soname);
    }
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
    find(library, "bascule_emulated_trace", functions.trace);
    find(library, "bascule_emulated_trace_read", functions.trace_read);
    find(library, "bascule_emulated_name_allocation", functions.name_allocation);
    find(library, "bascule_emulated_bookkeeping", functions.bookkeeping);
    find(library, "bascule_emulated_drop", functions.drop);
    find(library, "bascule_emulated_set_checks", functions.set_checks);
    find(library, "bascule_emulated_checks", functions.checks);
    find(library, "bascule_emulated_set_site", functions.set_site);
    find(library, "bascule_emulated_take_races", functions.take_races);
    find(library, "bascule_emulated_race_statistics", functions.race_statistics);
    find(library, "bascule_emulated_call_count", functions.call_count);
    return functions;
}

}  // namespace bascule
