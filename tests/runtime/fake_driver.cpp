// A CUDA driver that implements little more than cuInit and cuDeviceGetCount. FAKE_DRIVER selects how it fails:
// no_device, zero_devices, stub, broken or old.
#include <cstdlib>
#include <cstring>

#include <cuda.h>

#undef cuGetProcAddress

namespace {

bool is(const char* behaviour) {
    const char* chosen = std::getenv("FAKE_DRIVER");
    return chosen != nullptr && std::strcmp(chosen, behaviour) == 0;
}

CUresult initialise(unsigned int) {
    if (is("no_device")) return CUDA_ERROR_NO_DEVICE;
    if (is("broken")) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    return CUDA_SUCCESS;
}

CUresult version(int* out) {
    *out = is("old") ? 11080 : 13000;
    return CUDA_SUCCESS;
}

CUresult count(int* out) {
    *out = is("zero_devices") ? 0 : 1;
    return CUDA_SUCCESS;
}

CUresult error_name(CUresult, const char** text) {
    *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    return CUDA_SUCCESS;
}

CUresult error_text(CUresult, const char** text) {
    *text = "driver and kernel module differ";
    return CUDA_SUCCESS;
}

CUresult unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
    const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
    const auto answer = [&](auto* found) {
        *function = reinterpret_cast<void*>(found);
        return CUDA_SUCCESS;
    };
    *function = nullptr;
    if (is("stub")) return CUDA_ERROR_STUB_LIBRARY;
    if (is("old") && std::strncmp(name, "cuLibrary", 9) == 0) return CUDA_ERROR_NOT_FOUND;
    if (std::strcmp(name, "cuInit") == 0) return answer(&initialise);
    if (std::strcmp(name, "cuDriverGetVersion") == 0) return answer(&version);
    if (std::strcmp(name, "cuDeviceGetCount") == 0) return answer(&count);
    if (std::strcmp(name, "cuGetErrorName") == 0) return answer(&error_name);
    if (std::strcmp(name, "cuGetErrorString") == 0) return answer(&error_text);
    return answer(&unsupported);
}
