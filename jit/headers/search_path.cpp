#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/search_path.hpp>

namespace bascule {
namespace {

using Paths = std::vector<std::filesystem::path>;

constexpr const char* host_headers_name = "bascule_host_headers";

/// The paths that are directories, without those that lead to an earlier one.
std::vector<std::string> existing(const Paths& paths) {
    std::vector<std::string> found;
    std::vector<std::filesystem::path> known;
    for (const std::filesystem::path& path : paths) {
        std::error_code error;
        const std::filesystem::path resolved = std::filesystem::canonical(path, error);
        if (error || !std::filesystem::is_directory(resolved, error)) continue;
        if (std::ranges::find(known, resolved) != known.end()) continue;
        known.push_back(resolved);
        found.push_back(path.string());
    }
    return found;
}

/// CUDA_VERSION of the headers in this directory; 0 if there is none.
int version_of_headers(const std::filesystem::path& include) {
    constexpr std::string_view opening = "#define CUDA_VERSION ";
    std::ifstream header(include / "cuda.h");
    for (std::string line; std::getline(header, line);) {
        if (!line.starts_with(opening)) continue;
        int version = 0;
        std::from_chars(line.data() + opening.size(), line.data() + line.size(), version);
        return version;
    }
    return 0;
}

/// The directories that may have the headers of a library in a toolkit (lib64), a wheel of CUDA 13 (nvidia/cu13/lib),
/// conda's layout, Debian's layout (lib/x86_64-linux-gnu), or the wheels of CUDA 12, each of which has a directory of
/// its own (nvidia/cuda_nvrtc/lib).
Paths headers_beside(const std::string& library) {
    const std::filesystem::path root = std::filesystem::path(library).parent_path().parent_path();
    const std::filesystem::path above = root.parent_path();
    Paths includes = {root / "include", root / "targets" / toolkit_target / "include"};
    if (root.filename() == "lib") includes.push_back(above / "include");
    if (root.filename() == "cuda_nvrtc") {
        for (const char* wheel : {"cuda_runtime", "cuda_cccl", "cuda_nvcc", "curand"})
            includes.push_back(above / wheel / "include");
    }
    Paths places;
    for (const std::filesystem::path& include : includes) {
        places.push_back(include);
        places.push_back(include / "cccl");
    }
    return places;
}

/// The header directories of the first toolkit of this version (0: any version) that has CUDA's headers; empty if none
/// is installed.
Paths toolkit_headers(int cuda_version) {
    for (const std::filesystem::path root : toolkit_roots()) {
        const std::filesystem::path include = root / "include";
        if (!has_cuda_headers(include)) continue;
        const int version = version_of_headers(include);
        if (cuda_version == 0 || version == 0 || version == cuda_version) return {include, include / "cccl"};
    }
    return {};
}

}  // namespace

bool has_cuda_headers(const std::string& directory) {
    return std::ranges::any_of(cuda_headers, [&](const char* header) {
        return place_at(join(directory, header)).kind == PlaceKind::file;
    });
}

std::vector<std::string> header_search_path(const std::vector<std::string>& given,
                                            const std::string& nvrtc_library, int cuda_version) {
    Paths paths(given.begin(), given.end());
    if (given.empty()) {
        paths = headers_beside(nvrtc_library);
        std::ranges::move(toolkit_headers(cuda_version), std::back_inserter(paths));
    }
    const auto first_of_cuda =
        std::ranges::find_if(paths, [](const auto& path) { return has_cuda_headers(path); });
    for (const std::filesystem::path& place : own_places()) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(place / host_headers_name, ignored)) continue;
        paths.insert(first_of_cuda, place / host_headers_name);
        break;
    }
    return existing(paths);
}

std::vector<std::string> toolkit_roots() {
    std::vector<std::string> roots;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (auto root = path_from_environment(variable); root && !root->empty())
            roots.push_back(*std::move(root));
    }
    roots.emplace_back(usual_toolkit_root);
    return roots;
}

}  // namespace bascule
