#include <cstdlib>
#include <string_view>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/driver_limit.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {
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
