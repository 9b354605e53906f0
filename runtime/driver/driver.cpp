// Chooses and initializes the driver, loads its functions and turns its error codes into exceptions.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/services.hpp>

namespace bascule {
namespace {

constexpr const char* driver_soname = "libcuda.so.1";
constexpr const char* emulated_advice = "Set BASCULE_DEVICE=emulated to run without a GPU.";
constexpr int oldest_version = 12000;  // CUlibrary and CUkernel

std::mutex driver_mutex;

DeviceChoice choice_of_environment() {
    const char* value = std::getenv("BASCULE_DEVICE");
    const std::string_view choice = value == nullptr ? "" : value;
    if (choice.empty() || choice == "auto") return DeviceChoice::automatic;
    if (choice == "cuda") return DeviceChoice::cuda;
    if (choice == "emulated") return DeviceChoice::emulated;
    throw Error(
        fmt::format("BASCULE_DEVICE is '{}', which is none of cuda, emulated and auto. Set it to one of "
                    "these, or unset it.",
                    choice));
}

/// True if the loader found no such file. False if the file exists and cannot be loaded.
bool is_absent(const LibraryError& error) {
    const std::string& message = error.details().loader_message;
    return message.rfind(driver_soname, 0) == 0 && message.find("No such file") != std::string::npos;
}

/// Whether the emulated device's newest report explains this code, which is not that of a kernel's fault.
bool has_report(CUresult code) noexcept {
    return code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_INVALID_PTX ||
           code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_NOT_INITIALIZED ||
           code == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES || code == CUDA_ERROR_TIMEOUT ||
           code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

bool is_fault_of_kernel(CUresult code) noexcept {
    switch (static_cast<int>(code)) {  // integers, because the headers of CUDA 12.0 lack some of the names
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
            return true;
        default:
            return false;
    }
}

bool loses_context(CUresult code) noexcept {
    switch (static_cast<int>(code)) {
        // <cuda.h>: "the process must be terminated and relaunched".
        case 226:  // CUDA_ERROR_CONTAINED
        case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
        // <cuda.h> does not say so, but drivers behave so after them.
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_UNKNOWN:
            return true;
        default:
            return is_fault_of_kernel(code);
    }
}

std::vector<std::string> cuda_driver_candidates() {
    std::vector<std::string> candidates{driver_soname};
    // WSL installs the driver outside of the loader's search path.
    const char* const windows = "/usr/lib/wsl/lib/libcuda.so.1";
    std::error_code ignored;
    if (std::filesystem::exists(windows, ignored)) candidates.emplace_back(windows);
    return candidates;
}

/// The steps that turn a library into a Driver.
struct DriverLoader {
    std::unique_ptr<Driver> driver{new Driver};
    std::string missing;    // the first function that was not found
    bool is_stub = false;   // the toolkit's stub, whose functions all return one error
    int missing_since = 0;  // the driver version that introduced it

    /// Loads the installed driver. Returns null and sets `reason` if there is no GPU. If the library is the emulated
    /// device, which other libraries in the process then use too, it is shared with them unless `choice` asks for a
    /// GPU. Throws if there is a driver that cannot be used.
    static std::unique_ptr<Driver> cuda(DeviceChoice choice, std::string& reason) {
        const std::optional<DynamicLibrary> library = open_cuda(reason);
        if (!library) return nullptr;
        if (choice != DeviceChoice::cuda && is_emulated_library(*library)) return emulated(*library, "");
        DriverLoader loader;
        loader.driver->path_ = library->path();
        loader.resolve(*library);
        const DriverResult result = loader.initialise();
        if (result == CUDA_ERROR_STUB_LIBRARY) {
            reason = fmt::format("{} is the CUDA toolkit's stub, not a driver", library->path());
            return nullptr;
        }
        if (result == CUDA_ERROR_NO_DEVICE) {
            reason = fmt::format("the driver in {} reports no CUDA device", library->path());
            return nullptr;
        }
        loader.refuse_missing();
        loader.check_initialised(result);
        loader.count_devices();
        if (loader.driver->device_count_ == 0) {
            reason = fmt::format("the driver in {} reports no CUDA device", library->path());
            return nullptr;
        }
        return std::move(loader.driver);
    }

    static std::unique_ptr<Driver> emulated(const DynamicLibrary& library, const std::string& reason) {
        static EmulatedFunctions functions;  // written under `driver_mutex`, with the same values each time
        functions = find_emulated_functions(library);
        DriverLoader loader;
        loader.driver->path_ = library.path();
        loader.driver->fallback_reason_ = reason;
        loader.driver->emulated_ = &functions;
        loader.resolve(library);
        loader.refuse_missing();
        loader.driver->check(loader.initialise(), "initialising the emulated device");
        loader.count_devices();
        return std::move(loader.driver);
    }

  private:
    static std::optional<DynamicLibrary> open_cuda(std::string& reason) {
        try {
            return DynamicLibrary("CUDA driver", cuda_driver_candidates(), emulated_advice);
        } catch (const LibraryError& error) {
            if (!is_absent(error)) throw;
            reason = "no libcuda.so.1 was found";
            return std::nullopt;
        }
    }

    void resolve(const DynamicLibrary& library) {
        using GetProcAddress = PFN_cuGetProcAddress_v12000;
        auto get = reinterpret_cast<GetProcAddress>(library.find("cuGetProcAddress_v2"));
        // Drivers before 12.0 have only the older function. They are refused below because of their version.
        auto get_old = reinterpret_cast<PFN_cuGetProcAddress_v11030>(library.find("cuGetProcAddress"));
        if (get == nullptr && get_old == nullptr) missing = "cuGetProcAddress";

        const auto find = [&](const char* name, int version) -> void* {
            void* function = nullptr;
            CUdriverProcAddressQueryResult found{};
            const CUresult code =
                get != nullptr ? get(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found)
                : get_old != nullptr ? get_old(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM)
                                     : CUDA_ERROR_NOT_FOUND;
            is_stub = is_stub || code == CUDA_ERROR_STUB_LIBRARY;
            if (code == CUDA_SUCCESS && function != nullptr) return function;
            return nullptr;
        };
        const auto need = [&](const char* name, int version) -> void* {
            void* function = find(name, version);
            if (function == nullptr && missing.empty()) {
                missing = name;
                missing_since = version;
            }
            return function;
        };
#define BASCULE_RESOLVE(name, version, mode) \
    driver->api_.name.pointer = reinterpret_cast<PFN_##name##_v##version>(need(#name, version));
        BASCULE_DRIVER_FUNCTIONS(BASCULE_RESOLVE)
#undef BASCULE_RESOLVE
#define BASCULE_RESOLVE(name, version, mode) \
    driver->api_.name.pointer = reinterpret_cast<PFN_##name##_v##version>(find(#name, version));
        BASCULE_OPTIONAL_DRIVER_FUNCTIONS(BASCULE_RESOLVE)
#undef BASCULE_RESOLVE
        if (const auto change = services().change_driver_table) change(driver->api_);
    }

    DriverResult initialise() const {
        const auto& init = driver->api_.cuInit;
        if (is_stub) return init.result(CUDA_ERROR_STUB_LIBRARY);
        return init ? init(0) : init.result(CUDA_ERROR_NOT_INITIALIZED);
    }

    void check_initialised(DriverResult result) const {
        try {
            driver->check(result, "initialising the CUDA driver");
        } catch (const CudaError& error) {
            throw CudaError(fmt::format("{} {}", error.what(), emulated_advice), error.details());
        }
    }

    void refuse_missing() const {
        if (missing.empty()) return;
        int version = 0;
        if (driver->api_.cuDriverGetVersion) driver->api_.cuDriverGetVersion(&version);
        throw LibraryError(
            fmt::format("the CUDA driver in {} is for CUDA {} and lacks {}. Bascule needs a driver for CUDA "
                        "{} or newer: update the NVIDIA driver. {}",
                        driver->path_, version_text(version), missing,
                        version_text(std::max(missing_since, oldest_version)), emulated_advice),
            {.library = "CUDA driver", .paths_tried = {driver->path_}});
    }

    void count_devices() const {
        const DriverFunctions& api = driver->api_;
        driver->check(api.cuDriverGetVersion(&driver->version_), "asking for the driver's version");
        driver->check(api.cuDeviceGetCount(&driver->device_count_), "counting the devices");
    }
};

std::atomic<bool> Driver::forked{false};
std::atomic<const Driver*> Driver::the_one{nullptr};
std::atomic<FailureDescriber> Driver::failure_describer{nullptr};

const Driver& Driver::make() {
    const std::lock_guard lock(driver_mutex);
    if (const Driver* made = existing()) return *made;

    const DeviceChoice choice = choice_of_environment();
    std::string reason;
    std::unique_ptr<Driver> driver;
    if (choice != DeviceChoice::emulated) driver = DriverLoader::cuda(choice, reason);
    if (driver == nullptr && choice == DeviceChoice::cuda) {
        throw LibraryError(
            fmt::format("BASCULE_DEVICE=cuda asks for a GPU, but {} (tried: {}). Install the NVIDIA driver, "
                        "or set BASCULE_DEVICE=emulated to run without a GPU.",
                        reason, fmt::join(cuda_driver_candidates(), ", ")),
            {.library = "CUDA driver", .paths_tried = cuda_driver_candidates()});
    }
    if (driver == nullptr) driver = DriverLoader::emulated(open_emulated_library(), reason);
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    the_one.store(driver.get(), std::memory_order_release);
    return *driver.release();
}

const EmulatedFunctions& Driver::require_emulated(const char* why_not) const {
    if (emulated_ != nullptr) return *emulated_;
    throw LibraryError(why_not, {.library = "emulated device"});
}

namespace {

/// Advice for errors of NVIDIA's Multi-Process Service, through which processes share a GPU. Empty for other errors.
std::string_view mps_advice(CUresult code) noexcept {
    switch (static_cast<int>(code)) {
        case CUDA_ERROR_MPS_CONNECTION_FAILED:
            return "The control daemon of MPS does not answer. Start it (nvidia-cuda-mps-control -d), let "
                   "CUDA_MPS_PIPE_DIRECTORY name its directory, or run without MPS.";
        case CUDA_ERROR_MPS_RPC_FAILURE:
            return "The MPS server broke off the connection. Restart this process; if that does not help, restart "
                   "MPS (echo quit | nvidia-cuda-mps-control, then nvidia-cuda-mps-control -d).";
        case CUDA_ERROR_MPS_SERVER_NOT_READY:
            return "The MPS server is starting, or recovers from the fault of another client. Try again in some "
                   "seconds.";
        case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
            return "The MPS server takes no more clients. End other processes that use this GPU, or run fewer at "
                   "once.";
        case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
            return "The MPS server has no more connections to the GPU. Run fewer processes at once, or give each "
                   "fewer connections (CUDA_DEVICE_MAX_CONNECTIONS=2).";
        case CUDA_ERROR_MPS_CLIENT_TERMINATED:
            return "The MPS server ended this process's use of the GPU: another client's kernel faulted, or an "
                   "administrator ended it. The server's log names the cause.";
        default:
            return "";
    }
}

}  // namespace

/// Null for a code that the driver does not know.
const char* Driver::name_of(CUresult code) const noexcept {
    const char* name = nullptr;
    if (api_.cuGetErrorName) api_.cuGetErrorName(code, &name);
    return name;
}

std::string Driver::report_on(DriverResult result) const {
    const CUresult code = result;
    if (emulated_ == nullptr) return "";
    if (is_fault_of_kernel(code)) return emulated_->newest_fault().report;
    const bool explained = has_report(code) || std::string_view(result.call) == "cuInit";
    return explained ? emulated_->newest_report() : "";
}

std::string Driver::message_of(DriverResult result, std::string_view doing,
                               const FailureDetails& failure) const {
    const CUresult code = result;
    if (lost_by_fork()) {
        return fmt::format(
            "this process was forked from one that had used the {} already, and a forked process cannot use "
            "it. Start the process with multiprocessing's 'spawn' or 'forkserver', or fork before the first "
            "array, stream, compile or launch. (Failed: {}.)",
            emulated() ? "emulated device (which behaves like a GPU here)" : "GPU", doing);
    }
    const char* name = name_of(code);
    const char* text = nullptr;
    if (api_.cuGetErrorString) api_.cuGetErrorString(code, &text);
    const std::string error =
        fmt::format("{} ({})", name == nullptr ? "unknown code" : name, static_cast<int>(code));
    const char* description = text == nullptr ? "no description" : text;
    const auto line = [](std::string_view more) { return more.empty() ? "" : fmt::format("\n{}", more); };
    const bool has_context = std::string_view(result.call) != "cuInit";
    if (!loses_context(code) || !has_context) {
        return fmt::format("{} failed: {}: {}.{}{}", doing, error, description, line(failure.report),
                           line(mps_advice(code)));
    }
    // The fault comes first in the message, because the call that noticed it is not its cause.
    const char* const culprit = is_fault_of_kernel(code) ? "an earlier kernel failed" : "the device failed";
    return fmt::format(
        "{}{}{}\n{}, noticed while {}. The context is lost: all later calls return this error. Restart the "
        "process{}.",
        failure.report.empty() ? fmt::format("{}: {}.", culprit, description) : failure.report,
        line(failure.launch), line(mps_advice(code)), error, doing,
        emulated() ? advice(", or call bascule.emulated.reset() and make the arrays again", "") : "");
}

void Driver::fail(DriverResult result, std::string_view doing) const {
    const CUresult code = result;
    CudaError::Details details;
    details.code = static_cast<int>(code);
    const char* name = name_of(code);
    details.code_name = name == nullptr ? "" : name;
    details.call = result.call;
    details.doing = doing;
    FailureDetails failure;
    failure.report = report_on(result);
    if (const FailureDescriber describe = failure_describer.load(std::memory_order_acquire))
        failure = describe(*this, code, std::move(failure.report));
    std::string message = message_of(result, doing, failure);
    details.report = std::move(failure.report);
    details.launch = std::move(failure.launch);
    throw CudaError(message, std::move(details));
}

void Driver::fail(DriverResult result, CUstream stream, std::string_view doing) const {
    const auto handle = reinterpret_cast<std::uint64_t>(stream);
    fail(result, fmt::format("{} on {}", doing,
                             result == CUDA_ERROR_INVALID_HANDLE ? doubtful_name_of_stream(handle)
                                                                 : name_of_stream(handle)));
}

void Driver::fail_as(CUresult code, const std::string& message, const char* doing) const {
    const char* name = name_of(code);
    throw CudaError(message, {.code = code, .code_name = name == nullptr ? "" : name, .doing = doing});
}

std::string name_of_stream(std::uint64_t handle) {
    if (handle <= 1) return "the legacy default stream";
    if (handle == 2) return "the per-thread default stream";
    return fmt::format("stream {:#x}", handle);
}

std::string doubtful_name_of_stream(std::uint64_t handle) {
    return handle <= 2 ? name_of_stream(handle) : name_of_stream(handle) + " (is it still alive?)";
}

int Driver::attribute_of(int ordinal, CUdevice_attribute which) const {
    CUdevice device = 0;
    int value = 0;
    check(api_.cuDeviceGet(&device, ordinal), "finding a device");
    check(api_.cuDeviceGetAttribute(&value, which, device), "asking what a device can do");
    return value;
}

int Driver::attribute_of(CUkernel kernel, int ordinal, CUfunction_attribute which) const {
    int value = 0;
    check(api_.cuKernelGetAttribute(&value, which, kernel, ordinal), "asking what a kernel needs");
    return value;
}

unsigned int Driver::memory_type_of(const void* host) const noexcept {
    unsigned int type = 0;
    const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host));
    return ask_pointer(address, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type) == CUDA_SUCCESS ? type : 0;
}

void Driver::report(DriverResult result, const char* doing) const noexcept {
    const CUresult code = result;
    // Nothing is reported at the end of the process, in a forked child, or after the context was lost or destroyed.
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED || code == CUDA_ERROR_NOT_INITIALIZED ||
        code == CUDA_ERROR_CONTEXT_IS_DESTROYED || loses_context(code)) {
        return;
    }
    const char* name = name_of(code);
    std::fprintf(stderr, "bascule: %s failed: %s returned %s (%d)\n", doing, result.call,
                 name == nullptr ? "an unknown code" : name, static_cast<int>(code));
}

}  // namespace bascule
