#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/lookup/cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// Wheels of 12.4 and 13.5, a toolkit of 13.0 with its symbolic links, and a name that only the loader knows.
struct Installations {
    TemporaryDirectory directory;
    std::string wheel_12 = directory.write("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "");
    std::string wheel_13 = directory.write("nvidia/cu13/lib/libnvrtc.so.13", "");
    std::string toolkit = directory.path() + "/cuda/lib64/libnvrtc.so";
    std::string soname = "libnvrtc.so.13";

    Installations() {
        directory.write("nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.4", "");
        directory.write("nvidia/cu13/lib/libnvrtc-builtins.so.13.5", "");
        directory.write("cuda/lib64/libnvrtc.so.13.0.88", "");
        std::filesystem::create_symlink("libnvrtc.so.13.0.88",
                                        directory.path() + "/cuda/lib64/libnvrtc.so.13");
        std::filesystem::create_symlink("libnvrtc.so.13", toolkit);
    }
    std::vector<std::string> ordered(DriverLimit limit) const {
        return by_preference({{soname, wheel_12, toolkit, wheel_13}}, limit);
    }
};

TEST_CASE("the version of an NVRTC is known from names of files, without loading it") {
    const Installations all;
    CHECK(version_of_library(all.wheel_12) == CudaVersion{12, 4});
    CHECK(version_of_library(all.wheel_13) == CudaVersion{13, 5});
    CHECK(version_of_library(all.toolkit) == CudaVersion{13, 0});
    CHECK(version_of_library(all.soname) == CudaVersion{});
    CHECK(version_of_library("/nowhere/libnvrtc.so.13") == CudaVersion{});
}

TEST_CASE("the newest NVRTC whose major version is not above the driver's comes first") {
    const Installations all;
    const auto& [directory, wheel_12, wheel_13, toolkit, soname] = all;
    CHECK(all.ordered({}) == std::vector{wheel_13, toolkit, wheel_12, soname});
    CHECK(all.ordered({.driver = {14, 0}}) == std::vector{wheel_13, toolkit, wheel_12, soname});
    // Minor-version compatibility: machine code of 13.5 loads on a driver for 13.0.
    CHECK(all.ordered({.driver = {13, 0}}) == std::vector{wheel_13, toolkit, wheel_12, soname});
    CHECK(all.ordered({.driver = {12, 0}}) == std::vector{wheel_12, soname, wheel_13, toolkit});
}

TEST_CASE("for what takes PTX alone the NVRTC is no newer than the driver") {
    const Installations all;
    const auto& [directory, wheel_12, wheel_13, toolkit, soname] = all;
    CHECK(all.ordered({.driver = {13, 0}, .only_ptx = true}) ==
          std::vector{toolkit, wheel_12, soname, wheel_13});
    CHECK(all.ordered({.driver = {12, 3}, .only_ptx = true}) ==
          std::vector{soname, wheel_13, toolkit, wheel_12});
}

TEST_CASE("the wheels of CUDA 12 have their headers in directories of their own") {
    const Installations all;
    all.directory.write("nvidia/cuda_runtime/include/cuda_fp16.h", "");
    all.directory.write("nvidia/cuda_cccl/include/cuda/std/version", "");
    const auto searched = header_search_path({}, all.wheel_12, 12040);
    const auto has = [&](const std::string& name) {
        return std::find(searched.begin(), searched.end(), all.directory.path() + "/nvidia/" + name) !=
               searched.end();
    };
    CHECK(has("cuda_runtime/include"));
    CHECK(has("cuda_cccl/include"));
}

TEST_CASE("an NVRTC of CUDA 13 gets no headers of CUDA 12 from the wheels beside it") {
    const Installations all;
    all.directory.write("nvidia/cuda_runtime/include/cuda_fp16.h", "");
    all.directory.write("nvidia/cu13/include/cuda_fp16.h", "");
    auto searched = header_search_path({}, all.wheel_13, 13050);
    std::erase_if(searched, [&](const std::string& each) { return !each.starts_with(all.directory.path()); });
    CHECK(searched == std::vector{all.directory.path() + "/nvidia/cu13/include"});
}

TEST_CASE("a library in a directory of its architecture has its headers beside lib") {
    const TemporaryDirectory usr;
    const std::string library = usr.write("lib/x86_64-linux-gnu/libnvrtc.so.12.4.127", "");
    usr.write("include/cuda_runtime.h", "");
    const auto searched = header_search_path({}, library, 12040);
    CHECK(std::find(searched.begin(), searched.end(), usr.path() + "/include") != searched.end());
}

TEST_CASE(
    "a place that is asked earlier is taken before a newer NVRTC, unless the driver does not accept it") {
    const Installations all;
    const auto& [directory, wheel_12, wheel_13, toolkit, soname] = all;
    const std::vector<std::vector<std::string>> places = {{toolkit}, {wheel_12, wheel_13}, {soname}};
    CHECK(by_preference(places, {}) == std::vector{toolkit, wheel_13, wheel_12, soname});
    CHECK(by_preference(places, {.driver = {12, 4}}) == std::vector{wheel_12, soname, toolkit, wheel_13});
}

TEST_CASE("an NVRTC older than 12.0 is tried last, so that its error is read where there is no other") {
    const Installations all;
    const std::string old = all.directory.write("old/lib64/libnvrtc.so.11.8.89", "");
    CHECK(by_preference({{old}, {all.soname}, {all.wheel_12}}, {}) ==
          std::vector{all.wheel_12, all.soname, old});
}

TEST_CASE("a toolkit of another version adds no headers, of another minor version neither") {
    const TemporaryDirectory toolkit;
    toolkit.write("include/cuda_runtime.h", "");
    toolkit.write("include/cuda.h", "/* */\n#define CUDA_VERSION 12040\n");
    const Environment environment("CUDA_HOME", toolkit.path().c_str());
    const std::string include = toolkit.path() + "/include";
    const auto has = [&](int version) {
        const auto searched = header_search_path({}, "/nowhere/lib/libnvrtc.so", version);
        return std::find(searched.begin(), searched.end(), include) != searched.end();
    };
    CHECK(has(12040));
    CHECK_FALSE(has(12090));
    CHECK_FALSE(has(13000));
}

TEST_CASE("the command names the packages of a version") {
    CHECK(pip_command_for({12, -1}) ==
          "pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 "
          "nvidia-cuda-cccl-cu12");
    CHECK(
        contains(pip_command_for({13, 0}), "\"nvidia-cuda-nvrtc==13.0.*\" \"nvidia-cuda-runtime==13.0.*\""));
    CHECK(contains(pip_command_for({13, -1}), "\"nvidia-cuda-nvrtc==13.*\""));
}

TEST_CASE("a device that is newer than NVRTC gets the newest PTX that it can write") {
    const auto nvrtc = compiler().nvrtc();
    const Arch newest = nvrtc->nearest({.major = 99, .minor = 0});
    CHECK(newest.is_virtual);
    CHECK(10 * newest.major + newest.minor == nvrtc->supported_archs().back());
    CHECK(nvrtc->nearest({.major = 8, .minor = 0}) == Arch{.major = 8, .minor = 0});
    CHECK(nvrtc->nearest({.major = 3, .minor = 0}) ==
          Arch{.major = 3, .minor = 0});  // too old: the compile fails and says why
}

TEST_CASE("the cache compiles for the newest architecture in place of an unknown one, unless it was named") {
    Cache cache(toolkit());
    Program asked = program("__global__ void k() {}");
    asked.arch = {.major = 99, .minor = 0};
    CHECK(cache.image(asked).image->arch == compiler().nvrtc()->nearest(asked.arch));
    asked.options.arch = asked.arch;
    CHECK_THROWS_AS(cache.image(asked), CompileError);
}

TEST_CASE("from compute capability 9.0 on, a device's own target has the suffix that NVRTC does not list") {
    const auto nvrtc = compiler().nvrtc();
    for (const int known : nvrtc->supported_archs()) {
        const Arch device{.major = known / 10, .minor = known % 10};
        const Arch target = nvrtc->own_target(device);
        CAPTURE(known);
        CHECK(target.suffix == (known >= 90 ? 'a' : '\0'));
        Program asked = program("__global__ void k() {}");
        asked.options.arch = asked.arch = target;
        CHECK(Cache(toolkit()).image(asked).image->arch == target);
        asked.arch.suffix = 'a';
        asked.options.arch = asked.arch;
        if (known < 90) CHECK_THROWS_AS(Cache(toolkit()).image(asked), CompileError);
    }
    CHECK(nvrtc->own_target({.major = 99, .minor = 0}).suffix == '\0');  // PTX, which all newer devices run
    const Arch emulated{.major = 9, .minor = 0, .suffix = '\0', .is_virtual = true};
    CHECK(nvrtc->own_target(emulated) == emulated);
}

TEST_CASE(
    "code for the device at hand is for its own target, unless it is to be linked or an architecture is named") {
    Cache cache(toolkit());
    Program asked = program("__global__ void k() {}");
    asked.arch = {.major = 9, .minor = 0};
    CHECK(to_string(cache.image(asked).image->arch) == "sm_90a");
    asked.options.extra = {"--relocatable-device-code=true"};
    CHECK(to_string(cache.image(asked).image->arch) == "sm_90");
    asked.options.extra.clear();
    asked.options.arch = asked.arch;
    CHECK(to_string(cache.image(asked).image->arch) == "sm_90");
}

TEST_CASE("an architecture that is too old names the NVRTC that still has it") {
    if (compiler().nvrtc()->version().major < 13) return;
    Program old = program("__global__ void k() {}");
    old.arch = parse_arch("sm_52");
    CHECK(contains(compile_error(old),
                   "NVRTC 12 compiles for older devices: run `pip install nvidia-cuda-nvrtc-cu12"));
}

TEST_CASE("a name expression is known where NVRTC shows no line of it, as 12.0 does") {
    const auto got = parse_log(
        "__nv_name_map(2): error: cannot determine which instance of overloaded function \"k\" is "
        "intended\n\n"
        "__nv_name_map(2): error: Error in parsing name expression for lowered name lookup. Input name "
        "expression was: \" bascule :: signature < decltype ( & k ) >\"\n\n");
    REQUIRE(got.size() == 2);
    CHECK(name_expression_of(got[0]) == "bascule::signature<decltype(&k)>");
}

}  // namespace
}  // namespace bascule::testing
