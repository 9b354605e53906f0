#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/compile/nvrtc_search.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// An environment in which no variable names an NVRTC.
struct NothingNamed {
    Environment home{"CUDA_HOME", nullptr}, path{"CUDA_PATH", nullptr};
    Environment python{"VIRTUAL_ENV", nullptr}, conda{"CONDA_PREFIX", nullptr};
};

/// The place whose description has this beginning.
NvrtcPlace place(const std::string& beginning) {
    for (NvrtcPlace& each : nvrtc_places()) {
        if (each.description.starts_with(beginning)) return std::move(each);
    }
    FAIL("no place begins with ", beginning);
    return {};
}

TEST_CASE(
    "the environment's toolkit comes first, then the active environment, the program, a toolkit, the loader") {
    const NothingNamed nothing;
    std::string order;
    for (const NvrtcPlace& each : nvrtc_places()) order += each.description + "\n";
    const auto begins_in_order = [&](std::vector<std::string> words) {
        std::size_t at = 0;
        return std::ranges::all_of(words, [&](const std::string& word) {
            at = order.find(word, at);
            return at != order.npos;
        });
    };
    CHECK(begins_in_order({"CUDA_HOME (not set)\n", "CUDA_PATH (not set)\n", "VIRTUAL_ENV (not set)\n",
                           "CONDA_PREFIX (not set)\n", "the program's own directories", "/usr/local/cuda",
                           "the loader's path\n"}));
    CHECK(place("the loader's path").libraries ==
          std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12"});
}

TEST_CASE("the wheels of CUDA 13 and 12 are found in the active environment, whatever Python it has") {
    const NothingNamed nothing;
    const TemporaryDirectory environment;
    const std::string packages = "lib/python3.14t/site-packages/nvidia/";
    const std::string wheel_13 = environment.write(packages + "cu13/lib/libnvrtc.so.13", "");
    const std::string wheel_12 = environment.write(packages + "cuda_nvrtc/lib/libnvrtc.so.12", "");
    environment.write(packages + "cu13/lib/libnvrtc-builtins.so.13.5", "");
    environment.write(packages + "cu13/lib/libnvrtc.alt.so.13", "");
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const Environment active(variable, environment.path().c_str());
        CHECK(place(std::string(variable) + "=" + environment.path()).libraries ==
              std::vector{wheel_13, wheel_12});
    }
}

TEST_CASE("conda's own NVRTC is found, once, in any of the directories where a toolkit has it") {
    const NothingNamed nothing;
    const TemporaryDirectory root;
    const std::string library = root.write("lib/libnvrtc.so.12.9.86", "");
    std::filesystem::create_symlink("libnvrtc.so.12.9.86", root.path() + "/lib/libnvrtc.so.12");
    std::filesystem::create_directory_symlink("lib", root.path() + "/lib64");
    for (const char* variable : {"CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"}) {
        const Environment named(variable, root.path().c_str());
        const std::vector<std::string> found = place(variable).libraries;
        REQUIRE(found.size() == 1);
        CHECK(std::filesystem::equivalent(found[0], library));
    }
}

TEST_CASE("the directories that the program was linked to search are its own") {
    if (std::string(BASCULE_NVRTC_DIRECTORY).empty())
        return;  // there was no NVRTC when CMake configured the tests
    const std::vector<std::string> found = place("the program's own directories").libraries;
    CHECK(std::ranges::any_of(
        found, [](const std::string& library) { return library.starts_with(BASCULE_NVRTC_DIRECTORY); }));
}

TEST_CASE("a variable that names a directory without NVRTC is said to") {
    const NothingNamed nothing;
    const TemporaryDirectory empty;
    const Environment named("CUDA_HOME", empty.path().c_str());
    CHECK(place("CUDA_HOME").description == "CUDA_HOME=" + empty.path() + " (has no libnvrtc.so)");
    CHECK(place("CUDA_HOME").libraries.empty());
    CHECK(contains(message_of<Error>([&] { throw Error(advice_without_nvrtc(nvrtc_places())); }),
                   "CUDA_HOME=" + empty.path() + " (has no libnvrtc.so), CUDA_PATH (not set)"));
}

TEST_CASE("the advice names every place and what to do") {
    const std::string advice = advice_without_nvrtc({{"CUDA_HOME (not set)", {}}, {"the loader's path", {}}});
    for (const char* words : {"in this order: CUDA_HOME (not set), the loader's path. ",
                              "pip install \"nvidia-cuda-nvrtc==13.*\"", "activate it", "set CUDA_HOME",
                              "-Dbascule_NVRTC_DIRECTORY", "ToolkitLocation::nvrtc_libraries"}) {
        CAPTURE(words);
        CHECK(contains(advice, words));
    }
}

TEST_CASE("for Python a toolkit without NVRTC gives the path at which it was expected") {
    const NothingNamed nothing;
    const TemporaryDirectory empty;
    const Environment named("CUDA_PATH", empty.path().c_str());
    const std::vector<std::string> libraries = toolkit_nvrtc_libraries();
    CHECK(libraries.front() == empty.path() + "/lib64/libnvrtc.so");
    CHECK(libraries.back() == "libnvrtc.so.12");
}

}  // namespace
}  // namespace bascule::testing
