// Launch functions from before CUDA 4. A function's block, shared memory and parameters are set one by one and used by each
// cuLaunchGrid. Some clients still set the block before a cuLaunchKernel, which ignores it.
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/call.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated in <cuda.h>

namespace emulated::driver {
namespace {

constexpr std::size_t most_parameter_bytes = 4096;

/// The settings of a function.
struct LegacySettings {
    std::array<unsigned, 3> block = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<std::byte> parameters;
};

struct AllSettings {
    std::mutex mutex;
    std::unordered_map<const void*, LegacySettings> of;  // by handle; callers check that the handle is alive
    static AllSettings& get() {
        static auto& made = *new AllSettings;
        return made;
    }
};

/// Calls `change_it` with the function's settings, if the function exists.
template <class Change>
void change(CUfunction function, const Change& change_it) {
    check(initialised());
    require(find_object<KernelHandle>(function) != nullptr, CUDA_ERROR_INVALID_HANDLE);
    AllSettings& all = AllSettings::get();
    const std::lock_guard lock(all.mutex);
    change_it(all.of[function]);
}

void set_parameter(CUfunction function, int offset, const void* value, std::size_t bytes) {
    require(offset >= 0 && value != nullptr && offset + std::uint64_t{bytes} <= most_parameter_bytes);
    return change(function, [&](LegacySettings& settings) {
        const std::size_t end = static_cast<std::size_t>(offset) + bytes;
        if (settings.parameters.size() < end) settings.parameters.resize(end);
        std::memcpy(settings.parameters.data() + offset, value, bytes);
    });
}

}  // namespace

EMULATED_API(cuFuncSetBlockShape, 2000, CUfunction function, int x, int y, int z) {
    require(x > 0 && y > 0 && z > 0);
    return change(function, [&](LegacySettings& settings) {
        settings.block = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
    });
}

EMULATED_API(cuFuncSetSharedSize, 2000, CUfunction function, unsigned int bytes) {
    return change(function, [&](LegacySettings& settings) { settings.shared_bytes = bytes; });
}

/// The configuration is a preference and has no effect here.
EMULATED_API(cuFuncSetSharedMemConfig, 4020, CUfunction function, CUsharedconfig) {
    return change(function, [](LegacySettings&) {});
}

EMULATED_API(cuParamSetSize, 2000, CUfunction function, unsigned int bytes) {
    require(bytes <= most_parameter_bytes);
    return change(function, [&](LegacySettings& settings) { settings.parameters.resize(bytes); });
}

EMULATED_API(cuParamSeti, 2000, CUfunction function, int offset, unsigned int value) {
    return set_parameter(function, offset, &value, sizeof value);
}

EMULATED_API(cuParamSetf, 2000, CUfunction function, int offset, float value) {
    return set_parameter(function, offset, &value, sizeof value);
}

EMULATED_API(cuParamSetv, 2000, CUfunction function, int offset, void* value, unsigned int bytes) {
    return set_parameter(function, offset, value, bytes);
}

EMULATED_API(cuLaunchGridAsync, 2000, CUfunction function, int width, int height, CUstream stream) {
    require(width > 0 && height > 0);
    LegacySettings settings;
    change(function, [&](const LegacySettings& now) { settings = now; });
    std::size_t bytes = settings.parameters.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, settings.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    check(cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                         settings.block[0], settings.block[1], settings.block[2], settings.shared_bytes,
                         stream, nullptr, extra));
}

EMULATED_API(cuLaunchGrid, 2000, CUfunction function, int width, int height) {
    check(cuLaunchGridAsync(function, width, height, nullptr));
}

EMULATED_API(cuLaunch, 2000, CUfunction function) { check(cuLaunchGridAsync(function, 1, 1, nullptr)); }

}  // namespace emulated::driver

#pragma GCC diagnostic pop
