// Loads images into the driver, and looks up their kernels.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/link/code.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

namespace bascule {
namespace {

constexpr int opt_in_above = 48 * 1024;  // bytes of dynamic shared memory that need no opt-in

/// Loads the kernel completely. With lazy loading, the driver would load it at its first launch, which a capture may forbid.
void finish_loading(const Driver& driver, CUkernel kernel, const std::string& doing) {
    CUfunction function = nullptr;
    driver.check(driver.api().cuKernelGetFunction(&function, kernel), doing);
#if CUDA_VERSION >= 12040
    const auto load = driver.api().cuFuncLoad;  // older drivers load it when its attributes are queried
    if (load) driver.check(load(function), doing);
#endif
}

[[noreturn]] void fail_parameter(const KernelImage& kernel, const Parameter& parameter, std::size_t offset,
                                 std::size_t bytes) {
    if (parameter.spelling.find("long double") != parameter.spelling.npos) {
        throw Error(fmt::format(
            "kernel '{}' declares parameter '{}' as `{}`, which host and device pass with different "
            "sizes: devices have no type wider than double. Declare `double`.",
            kernel.name, parameter.name, parameter.spelling));
    }
    throw Error(fmt::format(
        "kernel '{}': the compiler gives parameter '{}' {} bytes at {}, and the driver {} bytes "
        "at {}. Nothing was launched. Where its type has a `long double`, declare `double`: devices "
        "have no wider type. Otherwise please report this with your NVRTC's and driver's versions.",
        kernel.name, parameter.name, parameter.bytes, parameter.offset, bytes, offset));
}

/// Kernels take 4 KB of parameters. From compute capability 7.0 and CUDA 12.1 drivers on, they take 32,764 bytes.
void check_parameter_bytes(const Driver& driver, const KernelImage& kernel) {
    constexpr int large_since = 12010;
    constexpr std::size_t most_before = 4096;
    const std::vector<Parameter>& parameters = kernel.signature.parameters;
    if (parameters.empty() || driver.version() >= large_since) return;
    const std::size_t bytes = parameters.back().offset + parameters.back().bytes;
    if (bytes <= most_before) return;
    reject(ErrorKind::not_supported,
           "the parameters of kernel '{}' are {} bytes, and this driver, of CUDA {}.{}, takes {}. Update the "
           "driver to CUDA 12.1 or newer, which takes 32764, or put the largest parameter into an array.",
           kernel.name, bytes, driver.version() / 1000, driver.version() % 1000 / 10, most_before);
}

/// The parameters in a GPU's constant memory begin at an address with this alignment and no more. The driver's offsets
/// equal those in PTX up to the first parameter with a larger alignment; after it they depend on the GPU.
constexpr std::uint32_t alignment_of_all = 16;

/// Compares the compiler's offsets and sizes of parameters with the driver's. Drivers before 12.4 do not report them.
void check_parameters([[maybe_unused]] const Driver& driver, [[maybe_unused]] CUkernel native,
                      [[maybe_unused]] const KernelImage& kernel) {
#if CUDA_VERSION >= 12040
    const auto ask = driver.api().cuKernelGetParamInfo;
    if (!ask) return;
    const std::vector<Parameter>& parameters = kernel.signature.parameters;
    bool depends = false;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        driver.check(ask(native, i, &offset, &bytes), "asking for a kernel's parameters");
        depends = depends || parameters[i].alignment > alignment_of_all;
        if ((offset != parameters[i].offset && !depends) || bytes != parameters[i].bytes) {
            fail_parameter(kernel, parameters[i], offset, bytes);
        }
    }
    const auto has_more = [&] {
#if CUDA_VERSION >= 13020
        if (const auto count = driver.api().cuKernelGetParamCount) {
            std::size_t all = 0;
            driver.check(count(native, &all), "counting a kernel's parameters");
            if (all <= parameters.size()) return false;
        }
#endif
        // A driver that does not report the number fails this call, which compute-sanitizer shows once per kernel.
        return ask(native, parameters.size(), &offset, &bytes) == CUDA_SUCCESS;
    };
    if (has_more()) {
        Parameter none;
        none.name = "(none)";
        fail_parameter(kernel, none, offset, bytes);
    }
#endif
}

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

/// The options of a load. The driver keeps pointers to them as long as it may compile part of the library.
struct Library::JitLog {
    static constexpr std::size_t text_bytes = 8192;

    std::array<char, text_bytes> text{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values = {text.data(), reinterpret_cast<void*>(text_bytes - 1)};

    DriverResult load(const Driver& driver, CUlibrary& library, const std::string& code) {
        DriverResult result =
            driver.api().cuLibraryLoadData(&library, code.c_str(), options.data(), values.data(),
                                           static_cast<unsigned int>(options.size()), nullptr, nullptr, 0);
        if (result != CUDA_SUCCESS || !names_an_error(text.data())) return result;
        // A driver that loads lazily accepts invalid PTX and writes the log. The error code appears when a kernel is
        // looked up.
        CUkernel none = nullptr;
        result = driver.api().cuLibraryGetKernel(&none, library, "none");
        driver.report(driver.api().cuLibraryUnload(library), "unloading a module");
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND) result.code = CUDA_ERROR_INVALID_PTX;
        return result;
    }
};

Library::Library(std::shared_ptr<const Image> image, Device device)
    : image_(std::move(image)),
      log_(std::make_unique<JitLog>()),
      unknown_stack_(has_unknown_stack(image_->ptx)) {
    const auto start = std::chrono::steady_clock::now();
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const bool runs_cubin = !image_->cubin.empty() && !device.emulated() &&
                            runs_on(CodeForm::cubin, image_->arch, device.capability());
    form_ = runs_cubin || image_->ptx.empty() ? CodeForm::cubin : CodeForm::ptx;
    DriverResult code = log_->load(driver, native_, form_ == CodeForm::cubin ? image_->cubin : image_->ptx);
    DriverResult last = code;
    if (code != CUDA_SUCCESS && form_ == CodeForm::cubin && !image_->ptx.empty()) {
        auto second = std::make_unique<JitLog>();
        last = second->load(driver, native_, image_->ptx);
        if (last == CUDA_SUCCESS) {
            code = last;
            form_ = CodeForm::ptx;
            log_ = std::move(second);
        }
    }
    if (code != CUDA_SUCCESS) {
        native_ = nullptr;
        fail_to_load(code, last, device);
    }
    if (checks_bounds(*image_)) bounds_number_ = remember_parameters(*image_);
    load_milliseconds_ =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Launches may be pending on streams that are not recorded here. Each has left a mark in its stream's queue, and a
// graph that captured one owns the library itself.
std::shared_ptr<const Library> Library::load(std::shared_ptr<const Image> image, Device device) {
    const auto unload_when_done = [](const Library* library) {
        try {
            const std::shared_ptr<const Library> last(library);  // its last copy unloads the library
            if (!Driver::lost_by_fork()) keep_until_all_done(last);
        } catch (...) {  // out of memory
        }
    };
    auto made = std::make_unique<Library>(std::move(image), device);
    Library& library = *made;
    std::shared_ptr<const Library> shared(made.release(), unload_when_done);
    library.code_ = shared;
    return shared;
}

/// `first` is the result for the code that was tried first. `last` is the result for the PTX if that was tried
/// afterwards, otherwise the same as `first`.
void Library::fail_to_load(DriverResult first, DriverResult last, Device device) const {
    const Driver& driver = Driver::get();
    const std::string log = driver.emulated() ? "" : log_->text.data();  // an emulated device reports it
    std::string advice;
    for (const CUresult code : {last.code, first.code}) {
        if (advice.empty()) advice = advice_for_refusal(code, image_->nvrtc_version, driver.version());
    }
    try {
        driver.check(first, fmt::format("loading code for {} on {}{}", to_string(image_->arch), device.name(),
                                        log.empty() ? "" : " (the driver says: " + log + ")"));
    } catch (const CudaError& error) {
        const std::string what = error.what();
        const std::size_t first_line = std::min(what.find('\n'), what.size());
        const std::string cause =
            driver.emulated() ? what.substr(std::min(first_line + 1, what.size())) : log;
        if (first == CUDA_ERROR_INVALID_PTX && advice.empty() && !cause.empty()) {
            // A message of the driver's assembler is a compile error in the text.
            throw CompileError(fmt::format("{}\n({})", cause, what.substr(0, first_line)),
                               {.log = cause, .architecture = to_string(image_->arch)});
        }
        if (advice.empty()) throw;
        throw CudaError(fmt::format("{}\n{}", error.what(), advice), error.details());
    }
}

bool Library::serves(Device device) const noexcept {
    return runs_on(form_, image_->arch, device.capability());
}

Library::~Library() {
    if (native_ == nullptr || Driver::lost_by_fork()) return;
    const ProgramLockReleased released;
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuLibraryUnload(native_), "unloading a module");
}

std::unique_ptr<const LoadedKernel> Library::load(const KernelImage& kernel, Device device) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    check_parameter_bytes(driver, kernel);
    auto loaded = std::make_unique<LoadedKernel>();
    loaded->library = this;
    loaded->image = &kernel;
    loaded->names = KernelNames::remember(kernel.signature.kernel, kernel.lowered_name, unknown_stack_);
    const std::string doing = fmt::format("loading kernel '{}' on {}", kernel.name, device.name());
    driver.check(driver.api().cuLibraryGetKernel(&loaded->native, native_, kernel.lowered_name.c_str()),
                 doing);
    finish_loading(driver, loaded->native, doing);
    check_parameters(driver, loaded->native, kernel);
    if (bounds_number_ != 0) {
        // An image without the variable has no checked access that could fail.
        if (const auto hook = variable(bounds_hook, device))
            place_bounds_record(hook->address, hook->bytes, bounds_number_, device);
    }
    const auto ask = [&](CUfunction_attribute which) {
        return driver.attribute_of(loaded->native, device.ordinal(), which);
    };
    loaded->registers = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
    loaded->static_shared_bytes = static_cast<std::uint32_t>(ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    loaded->local_bytes = static_cast<std::uint32_t>(ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));

    loaded->limits = device.limits();
    loaded->limits.device_threads = loaded->limits.threads;
    loaded->limits.registers = static_cast<std::uint32_t>(loaded->registers);
    loaded->limits.device_registers = static_cast<std::uint32_t>(
        driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
    loaded->limits.threads = std::min(
        loaded->limits.threads, static_cast<std::uint32_t>(ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)));
    const int dynamic =
        static_cast<int>(device.limits().shared_bytes) - static_cast<int>(loaded->static_shared_bytes);
    loaded->limits.shared_bytes = static_cast<std::uint32_t>(std::max(dynamic, 0));
    loaded->limits.static_shared_bytes = loaded->static_shared_bytes;
    if (dynamic > opt_in_above) {
        driver.check(driver.api().cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                       dynamic, loaded->native, device.ordinal()),
                     "setting how much shared memory a kernel may use");
    }
    return loaded;
}

std::optional<LoadedVariable> Library::variable(const std::string& lowered_name, Device device) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    const DriverResult code =
        driver.api().cuLibraryGetGlobal(&address, &bytes, native_, lowered_name.c_str());
    if (code == CUDA_ERROR_NOT_FOUND) return std::nullopt;
    driver.check(code, "finding a variable");
    return LoadedVariable{address, bytes};
}

// --- The choice of code -------------------------------------------------------------------------------------

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
