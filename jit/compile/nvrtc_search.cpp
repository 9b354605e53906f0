#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/search_path.hpp>

namespace bascule {

namespace {

namespace fs = std::filesystem;

/// Older versions lack functions that all later ones have, and do not lower the name expressions that Bascule uses.
constexpr CudaVersion oldest_nvrtc{12, 0};

/// Returns 12.4 for "libnvrtc.so.12.4.127" and the prefix "libnvrtc.so."; the minor number is -1 if it is missing.
std::optional<CudaVersion> version_behind(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    CudaVersion version{0, -1};
    const char* const end = name.data() + name.size();
    const auto dot = std::from_chars(name.data(), end, version.major);
    if (dot.ec != std::errc()) return std::nullopt;
    if (dot.ptr != end && *dot.ptr == '.') std::from_chars(dot.ptr + 1, end, version.minor);
    return version;
}

using Paths = std::vector<fs::path>;

/// The names that the loader is asked for; programs link to these names.
constexpr const char* loader_names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// The entries of a directory whose names begin with `prefix`, sorted; empty if it cannot be read.
Paths entries_that_begin(const fs::path& directory, std::string_view prefix) {
    Paths found;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
    }
    std::ranges::sort(found);
    return found;
}

/// libnvrtc.so and libnvrtc.so.VERSION in these directories; each library is listed once, even if several links lead to it.
std::vector<std::string> libraries_in(const Paths& directories) {
    std::vector<std::string> libraries;
    Paths known;
    for (const fs::path& directory : directories) {
        for (const fs::path& file : entries_that_begin(directory, "libnvrtc.so")) {
            std::error_code error;
            const fs::path library = fs::canonical(file, error);
            if (error || std::ranges::find(known, library) != known.end()) continue;
            known.push_back(library);
            libraries.push_back(file.string());
        }
    }
    return libraries;
}

/// The library directories of a toolkit, and of a conda environment, which is laid out like one.
Paths toolkit_directories(const fs::path& root) {
    return {root / "lib64", root / "lib", root / "targets" / toolkit_target / "lib"};
}

/// nvidia/cu13/lib for the wheels of CUDA 13, nvidia/cuda_nvrtc/lib for those of CUDA 12.
Paths wheel_directories(const fs::path& site_packages) {
    Paths directories;
    for (const fs::path& package : entries_that_begin(site_packages / "nvidia", "cu"))
        directories.push_back(package / "lib");
    return directories;
}

/// The library directories of a Python environment: those of its wheels, and conda's own.
Paths environment_directories(const fs::path& root) {
    Paths directories;
    for (const fs::path& python : entries_that_begin(root / "lib", "python"))
        std::ranges::move(wheel_directories(python / "site-packages"), std::back_inserter(directories));
    std::ranges::move(toolkit_directories(root), std::back_inserter(directories));
    return directories;
}

/// The directories of the program or library that contains this code, and those of wheels in the same site-packages.
Paths program_directories() {
    Paths directories = own_places();
    if (!directories.empty())
        std::ranges::move(wheel_directories(directories.front().parent_path()),
                          std::back_inserter(directories));
    return directories;
}

NvrtcPlace place_of(const std::string& name, const Paths& directories) {
    NvrtcPlace place{name, libraries_in(directories)};
    if (place.libraries.empty()) place.description += " (has no libnvrtc.so)";
    return place;
}

/// The place that an environment variable names.
NvrtcPlace place_of_variable(const char* variable, Paths (&directories_of)(const fs::path&)) {
    const std::optional<std::string> root = path_from_environment(variable);
    if (!root || root->empty()) return {fmt::format("{} (not set)", variable), {}};
    return place_of(fmt::format("{}={}", variable, *root), directories_of(*root));
}

NvrtcPlace toolkit_place() { return place_of(usual_toolkit_root, toolkit_directories(usual_toolkit_root)); }

}  // namespace

std::string to_string(CudaVersion version) { return fmt::format("{}.{}", version.major, version.minor); }

bool DriverLimit::accepts(CudaVersion nvrtc) const noexcept {
    if (driver.major == 0) return true;
    return only_ptx ? nvrtc <= driver : nvrtc.major <= driver.major;
}

CudaVersion version_of_library(const std::string& path) {
    std::error_code error;
    // Resolves links, because libnvrtc.so is one to libnvrtc.so.12.4.127.
    const fs::path file = fs::canonical(path, error);
    if (error) return {};
    const auto named = version_behind(file.filename().string(), "libnvrtc.so.");
    if (!named) return {};
    if (named->minor >= 0) return *named;
    CudaVersion newest{};  // because wheels put only the major number into the library's name
    for (const fs::directory_entry& entry : fs::directory_iterator(file.parent_path(), error)) {
        const auto version = version_behind(entry.path().filename().string(), "libnvrtc-builtins.so.");
        if (version && version->major == named->major) newest = std::max(newest, *version);
    }
    return newest;
}

std::vector<std::string> by_preference(std::vector<std::vector<std::string>> places,
                                       const DriverLimit& limit) {
    using Rank = std::tuple<int, int, int, int>;  // the lowest comes first
    std::vector<std::pair<Rank, std::string>> ranked;
    for (int place = 0; std::vector<std::string> & in_one_place : places) {
        for (std::string& library : in_one_place) {
            const CudaVersion version = version_of_library(library);
            const bool accepted = version >= oldest_nvrtc && limit.accepts(version);
            const int group = version == CudaVersion{} ? 1 : accepted ? 0 : 2;
            ranked.emplace_back(Rank{group, place, -version.major, -version.minor}, std::move(library));
        }
        ++place;
    }
    std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> ordered;
    ordered.reserve(ranked.size());
    for (auto& [rank, library] : ranked) ordered.push_back(std::move(library));
    return ordered;
}

std::string pip_command_for(CudaVersion version) {
    const bool is_12 = version.major == 12;
    std::string command = "pip install";
    for (const char* package : {"nvrtc", "runtime", is_12 ? "nvcc" : "crt", "cccl"}) {
        const std::string name = fmt::format("nvidia-cuda-{}{}", package, is_12 ? "-cu12" : "");
        if (version.minor >= 0) {
            command += fmt::format(" \"{}=={}.{}.*\"", name, version.major, version.minor);
        } else if (is_12) {  // the package's name contains the major version
            command += " " + name;
        } else {
            command += fmt::format(" \"{}=={}.*\"", name, version.major);
        }
    }
    return command;
}

std::vector<NvrtcPlace> nvrtc_places() {
    return {
        place_of_variable("CUDA_HOME", toolkit_directories),
        place_of_variable("CUDA_PATH", toolkit_directories),
        place_of_variable("VIRTUAL_ENV", environment_directories),
        place_of_variable("CONDA_PREFIX", environment_directories),
        place_of("the program's own directories and those it was linked to search", program_directories()),
        toolkit_place(),
        {"the loader's path", {std::begin(loader_names), std::end(loader_names)}},
    };
}

std::vector<std::string> toolkit_nvrtc_libraries() {
    std::vector<std::string> libraries;
    for (const fs::path root : toolkit_roots()) {
        std::vector<std::string> found = libraries_in(toolkit_directories(root));
        if (found.empty()) found.push_back(root / "lib64/libnvrtc.so");
        std::ranges::move(found, std::back_inserter(libraries));
    }
    libraries.insert(libraries.end(), std::begin(loader_names), std::end(loader_names));
    return libraries;
}

std::string advice_without_nvrtc(const std::vector<NvrtcPlace>& places) {
    std::vector<std::string_view> searched;
    searched.reserve(places.size());
    for (const NvrtcPlace& place : places) searched.push_back(place.description);
    return fmt::format(
        "It was looked for in this order: {}. Do one of these: run `{}` in a virtual environment and activate it "
        "before the program runs; install a CUDA toolkit and set CUDA_HOME to it; build the program with "
        "-Dbascule_NVRTC_DIRECTORY=DIRECTORY, the directory of libnvrtc.so.13; or name the library in the program, in "
        "ToolkitLocation::nvrtc_libraries.",
        fmt::join(searched, ", "), pip_command_for({13, -1}));
}

}  // namespace bascule
