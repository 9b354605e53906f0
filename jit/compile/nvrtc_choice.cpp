#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include <bascule/jit/compile/nvrtc_choice.hpp>

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

}  // namespace

std::string to_string(CudaVersion version) { return fmt::format("{}.{}", version.major, version.minor); }

bool DriverLimit::accepts(CudaVersion nvrtc) const noexcept {
    if (driver.major == 0) return true;
    return only_ptx ? nvrtc <= driver : nvrtc.major <= driver.major;
}

CudaVersion version_of_library(const std::string& path) {
    std::error_code error;
    // Because libnvrtc.so is a link to libnvrtc.so.12.4.127.
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

}  // namespace bascule
