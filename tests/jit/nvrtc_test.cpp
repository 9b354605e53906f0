#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/lookup/cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// The NVRTC of all tests. It is never unloaded.
const Nvrtc& nvrtc() {
    static const std::shared_ptr<const Nvrtc>& loaded = *new auto(compiler().nvrtc());
    return *loaded;
}

TEST_CASE("without NVRTC the error lists every path tried and what to install") {
    const ToolkitLocation nowhere{{"/nowhere/libnvrtc.so.13", "libnvrtc-not-there.so.99"}, {}, false};
    try {
        Nvrtc library(nowhere);
        FAIL("loaded");
    } catch (const LibraryError& error) {
        CHECK(error.details().paths_tried == nowhere.nvrtc_libraries);
        CHECK(contains(error.what(), "/nowhere/libnvrtc.so.13, libnvrtc-not-there.so.99"));
        CHECK(contains(error.what(), "pip install nvidia-cuda-nvrtc"));
        CHECK(contains(error.details().loader_message, "libnvrtc-not-there.so.99"));
    }
}

TEST_CASE("a library that is no NVRTC is refused by the function that it lacks") {
    CHECK(contains(message_of<LibraryError>([] { Nvrtc library({{"libc.so.6"}, {}}); }), "nvrtcVersion"));
}

TEST_CASE("a missing NVRTC fails the compile, not the making of the cache") {
    Cache cache({{"/nowhere/libnvrtc.so.13"}, {}});
    CHECK_THROWS_AS(cache.image(program("")), LibraryError);
    cache.set_toolkit(toolkit());
    CHECK(cache.image(program("__global__ void k() {}")).image->kernels.size() == 1);
}

TEST_CASE("a loaded NVRTC knows its version, file, headers and architectures") {
    CHECK(nvrtc().version().major >= 12);
    CHECK(std::filesystem::exists(nvrtc().path()));
    const std::vector<std::string>& paths = nvrtc().include_paths();
    CHECK(std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
        return std::filesystem::exists(path + "/cuda_fp16.h");
    }));
    const std::vector<int> archs = nvrtc().supported_archs();
    CHECK(std::find(archs.begin(), archs.end(), 80) != archs.end());
}

TEST_CASE("include paths that are given are taken, those that do not exist are left out") {
    const TemporaryDirectory directory;
    const auto searched = header_search_path({"/nowhere", directory.path(), directory.path() + "/."}, "");
    CHECK(std::count(searched.begin(), searched.end(), directory.path()) == 1);
    CHECK(std::find(searched.begin(), searched.end(), "/nowhere") == searched.end());
}

TEST_CASE("the stand-ins for host headers come after the user's directories and before CUDA's") {
    const TemporaryDirectory user, cuda, after;
    cuda.write("cuda_runtime.h", "");
    const auto searched = header_search_path({user.path(), cuda.path(), after.path()}, "");
    REQUIRE(searched.size() == 4);
    CHECK(searched[0] == user.path());
    CHECK(std::filesystem::exists(searched[1] + "/stdint.h"));
    CHECK(searched[2] == cuda.path());
    CHECK(searched[3] == after.path());
}

TEST_CASE("a toolkit's headers come after those beside the library, once") {
    const TemporaryDirectory wheel, toolkit;
    wheel.write("include/cuda_runtime.h", "");
    toolkit.write("include/cuda_runtime.h", "");
    toolkit.write("include/cccl/cub/config.cuh", "");
    const char* before = std::getenv("CUDA_HOME");
    const std::string kept = before == nullptr ? "" : before;
    setenv("CUDA_HOME", toolkit.path().c_str(), 1);
    const auto beside_wheel = header_search_path({}, wheel.path() + "/lib/libnvrtc.so");
    const auto beside_toolkit = header_search_path({}, toolkit.path() + "/lib64/libnvrtc.so");
    kept.empty() ? unsetenv("CUDA_HOME") : setenv("CUDA_HOME", kept.c_str(), 1);
    const auto of_cuda = [](std::vector<std::string> searched) {
        std::erase_if(searched,
                      [](const std::string& path) { return path.ends_with("/bascule_host_headers"); });
        return searched;
    };
    const std::vector<std::string> of_toolkit = {toolkit.path() + "/include",
                                                 toolkit.path() + "/include/cccl"};
    CHECK(of_cuda(beside_wheel) ==
          std::vector{wheel.path() + "/include", of_toolkit.front(), of_toolkit.back()});
    CHECK(of_cuda(beside_toolkit) == of_toolkit);
}

TEST_CASE("every run of the compiler is counted") {
    const std::uint64_t before = Nvrtc::compile_calls();
    compile("__global__ void k() {}");
    CHECK(Nvrtc::compile_calls() == before + 1);
}

extern "C" void own_handler(int) {}

TEST_CASE("handlers of SIGINT and SIGTERM are as before, after one compile and after several at once") {
    struct sigaction own = {}, before_int = {}, before_term = {};
    own.sa_handler = own_handler;
    sigaction(SIGINT, &own, &before_int);
    sigaction(SIGTERM, &own, &before_term);
    const auto are_own = [] {
        struct sigaction on_int = {}, on_term = {};
        sigaction(SIGINT, nullptr, &on_int);
        sigaction(SIGTERM, nullptr, &on_term);
        return on_int.sa_handler == own_handler && on_term.sa_handler == own_handler;
    };
    compile("__global__ void k(int a) {}");
    CHECK(are_own());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([i] {
            for (int round = 0; round < 3; ++round)
                compile("__global__ void k" + std::to_string(i) + "() {}");
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(are_own());
    sigaction(SIGINT, &before_int, nullptr);
    sigaction(SIGTERM, &before_term, nullptr);
}

}  // namespace
}  // namespace bascule::testing
