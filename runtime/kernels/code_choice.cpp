#include <algorithm>
#include <array>
#include <cstdio>

#include <cuda.h>
#include <fmt/format.h>

#include <bascule/runtime/kernels/code_choice.hpp>

namespace bascule {
namespace {

int number_of(Arch arch) noexcept { return 10 * arch.major + arch.minor; }

/// True for Tegra devices. The programming guide promises binary compatibility only for desktop GPUs: Tegra devices do
/// not run other devices' machine code, nor others theirs. Architecture 110 was called 101 in CUDA 12.
bool stands_alone(Arch arch) noexcept {
    constexpr std::array tegra = {53, 62, 72, 87, 101, 110};
    return std::find(tegra.begin(), tegra.end(), number_of(arch)) != tegra.end();
}

/// Whether `device` is in the family of `code`: it has the same major version and the same or a newer minor version. A
/// Tegra device is only in its own family.
bool in_family_of(Arch code, Arch device) noexcept {
    if (number_of(code) == number_of(device)) return true;
    return code.major == device.major && code.minor < device.minor && !stands_alone(code) &&
           !stands_alone(device);
}

}  // namespace

bool runs_on(CodeForm form, Arch code, Arch device) noexcept {
    if (code.suffix == 'a') return number_of(code) == number_of(device);
    if (code.suffix == 'f' || form == CodeForm::cubin) return in_family_of(code, device);
    return number_of(code) <= number_of(device);
}

std::string version_conflict(CudaVersion nvrtc, CudaVersion driver) {
    if (nvrtc <= driver) return {};
    if (nvrtc.major > driver.major) {
        return fmt::format(
            "The driver is for CUDA {}, and loads no code of NVRTC {}: install an NVRTC of CUDA {} with "
            "`{}`, or update the driver.",
            to_string(driver), to_string(nvrtc), driver.major, pip_command_for({driver.major, -1}));
    }
    return fmt::format(
        "The driver is for CUDA {}, and loads machine code of NVRTC {} but not its PTX, which devices need "
        "that this NVRTC does not know: update the driver, or install an NVRTC of its version with `{}`.",
        to_string(driver), to_string(nvrtc), pip_command_for(driver));
}

std::string advice_for_refusal(int refusal, const std::string& nvrtc, int driver) {
    CudaVersion of_nvrtc;
    std::sscanf(nvrtc.c_str(), "%d.%d", &of_nvrtc.major, &of_nvrtc.minor);
    switch (refusal) {
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case 227:  // CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, since CUDA 13.1
            if (of_nvrtc.major <= driver / 1000) return {};
            [[fallthrough]];
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
            return version_conflict(of_nvrtc, {driver / 1000, driver % 1000 / 10});
        case CUDA_ERROR_JIT_COMPILATION_DISABLED:
            return "The driver must compile this code, and CUDA_DISABLE_PTX_JIT forbids it: unset that "
                   "variable, or compile for the device's own architecture with an NVRTC that knows it.";
        case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
            return "The driver must compile this code, and libnvidia-ptxjitcompiler.so.1 was not found: "
                   "install the whole driver, or give a container "
                   "NVIDIA_DRIVER_CAPABILITIES=compute,utility.";
        default:
            return {};
    }
}

bool names_an_error(std::string_view log) noexcept {
    while (!log.empty()) {
        const std::string_view line = log.substr(0, log.find('\n'));
        log.remove_prefix(std::min(log.size(), line.size() + 1));
        const auto holds = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
        if (line.find_first_not_of(" \t\r") != std::string_view::npos && !holds("warning") && !holds("info"))
            return true;
    }
    return false;
}

}  // namespace bascule
