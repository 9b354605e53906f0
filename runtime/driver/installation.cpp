#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/installation.hpp>

namespace bascule {
namespace {

std::string describe_device() {
    try {
        const Device device = Device::current();
        return fmt::format("{}, kernels are compiled for {}", device.name(), to_string(device.arch()));
    } catch (const Error& error) {
        return fmt::format("none: {}", error.what());
    }
}

std::string describe_driver() {
    try {
        const Driver& driver = Driver::get();
        const std::string why = driver.fallback_reason().empty()
                                    ? ""
                                    : fmt::format(" (no GPU is used: {})", driver.fallback_reason());
        return fmt::format("{} {}.{}: {}{}", driver.emulated() ? "emulated device" : "CUDA driver",
                           driver.version() / 1000, driver.version() % 1000 / 10, driver.path(), why);
    } catch (const Error& error) {
        return fmt::format("none: {}", error.what());
    }
}

std::string describe_nvrtc(const Nvrtc* nvrtc, const std::string& why_none) {
    if (nvrtc == nullptr) return fmt::format("none: {}", why_none);
    return fmt::format("{}: {}", to_string(nvrtc->version()), nvrtc->path());
}

std::string describe_headers(const Nvrtc* nvrtc) {
    if (nvrtc == nullptr) return "they are looked for beside NVRTC";
    std::vector<std::string> directories;
    for (const std::string& directory : nvrtc->include_paths()) {
        if (has_cuda_headers(directory)) directories.push_back(directory);
    }
    if (directories.empty()) {
        return fmt::format("none of CUDA's: run `{}` for those of this NVRTC",
                           pip_command_for(nvrtc->version()));
    }
    return fmt::format("{}", fmt::join(directories, ", "));
}

}  // namespace

std::string describe_installation() {
    std::shared_ptr<const Nvrtc> nvrtc;
    std::string why_none;
    try {
        Cache& cache = Cache::process_default();
        cache.set_driver_limit(driver_limit());
        nvrtc = cache.nvrtc();
    } catch (const Error& error) {
        why_none = error.what();
    }
    return fmt::format("device     {}\ndriver     {}\nnvrtc      {}\nheaders    {}\n", describe_device(),
                       describe_driver(), describe_nvrtc(nvrtc.get(), why_none),
                       describe_headers(nvrtc.get()));
}

namespace {

std::string_view environment(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
}

DriverLimit of_version(int version) { return {.driver = {version / 1000, version % 1000 / 10}}; }

/// No limit, unless BASCULE_EMULATED_DRIVER names a version. The emulated device itself checks the variable's form.
DriverLimit of_emulated_device() {
    const std::string_view named = environment("BASCULE_EMULATED_DRIVER");
    const std::size_t dot = named.find('.');
    if (dot == named.npos) return {};
    return {.driver = {std::atoi(std::string(named.substr(0, dot)).c_str()),
                       std::atoi(std::string(named.substr(dot + 1)).c_str())},
            .only_ptx = true};
}

/// The installed driver's version. cuDriverGetVersion needs no cuInit.
DriverLimit of_installed_driver() {
    try {
        const DynamicLibrary library("CUDA driver", cuda_driver_candidates(), "");
        const bool shared = is_emulated_library(library) && environment("BASCULE_DEVICE") != "cuda";
        if (shared) return of_emulated_device();
        const auto ask = reinterpret_cast<PFN_cuDriverGetVersion_v2020>(library.find("cuDriverGetVersion"));
        int version = 0;
        // The toolkit's stub returns an error.
        if (ask != nullptr && ask(&version) == CUDA_SUCCESS) return of_version(version);
    } catch (const LibraryError&) {  // a driver is not needed for compiling
    }
    return {};
}

}  // namespace

DriverLimit driver_limit() {
    const Driver* driver = Driver::existing();
    const bool emulated =
        driver != nullptr ? driver->emulated() : environment("BASCULE_DEVICE") == "emulated";
    if (emulated) return of_emulated_device();
    if (driver != nullptr) return of_version(driver->version());
    static const DriverLimit installed = of_installed_driver();
    return installed;
}

}  // namespace bascule
