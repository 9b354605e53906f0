#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nvrtc.h>

#include <bascule/interface/error.hpp>
#include <bascule/jit/nvrtc.hpp>

namespace bascule {
namespace {

std::atomic<std::uint64_t> compile_count{0};

constexpr const char* advice =
    "Install one with `pip install nvidia-cuda-nvrtc`, or a CUDA toolkit, or name the library: "
    "bascule.config.nvrtc_library (Python), "
    "ToolkitLocation::nvrtc_libraries (C++).";

/// Puts SIGINT's and SIGTERM's handlers back while NVRTC's front end replaces them (versions up to 13.0), so
/// that Ctrl-C still reaches the program.
class SignalKeeper {
  public:
    SignalKeeper() {
        for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
    }

    void restore() const noexcept {
        for (std::size_t i = 0; i < signals.size(); ++i) {
            struct sigaction now = {};
            sigaction(signals[i], nullptr, &now);
            if (now.sa_handler != before_[i].sa_handler) sigaction(signals[i], &before_[i], nullptr);
        }
    }

  private:
    static constexpr std::array signals = {SIGINT, SIGTERM};
    std::array<struct sigaction, 2> before_ = {};
};

/// Runs `work` on a thread of its own while the caller guards the signal handlers.
template <class Work>
void run_with_signals_kept(const Work& work) {
    const SignalKeeper keeper;
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    std::exception_ptr failure;
    std::thread worker([&] {
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        done = true;
        finished.notify_one();
    });
    {
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(2), [&] { return done; })) keeper.restore();
    }
    worker.join();
    keeper.restore();
    if (failure) std::rethrow_exception(failure);
}

std::vector<std::string> existing(const std::vector<std::string>& paths) {
    std::vector<std::string> found;
    for (const std::string& path : paths) {
        std::error_code ignored;
        if (std::filesystem::is_directory(path, ignored)) found.push_back(path);
    }
    return found;
}

/// Where headers lie beside a library: lib64/../include, targets/x86_64-linux/lib/../include,
/// nvidia/cu13/lib/../include.
std::vector<std::string> headers_beside(const std::string& library) {
    const std::filesystem::path root = std::filesystem::path(library).parent_path().parent_path();
    return existing({(root / "include").string(), (root / "include" / "cccl").string()});
}

}  // namespace

/// NVRTC's functions that every version since 12.0 has.
struct Nvrtc::Functions {
    decltype(&::nvrtcVersion) version;
    decltype(&::nvrtcGetErrorString) error_string;
    decltype(&::nvrtcGetNumSupportedArchs) arch_count;
    decltype(&::nvrtcGetSupportedArchs) archs;
    decltype(&::nvrtcCreateProgram) create_program;
    decltype(&::nvrtcDestroyProgram) destroy_program;
    decltype(&::nvrtcAddNameExpression) add_name_expression;
    decltype(&::nvrtcCompileProgram) compile_program;
    decltype(&::nvrtcGetProgramLogSize) log_size;
    decltype(&::nvrtcGetProgramLog) log;
    decltype(&::nvrtcGetPTXSize) ptx_size;
    decltype(&::nvrtcGetPTX) ptx;
    decltype(&::nvrtcGetCUBINSize) cubin_size;
    decltype(&::nvrtcGetCUBIN) cubin;
    decltype(&::nvrtcGetLoweredName) lowered_name;
    Version loaded_version;

    explicit Functions(const DynamicLibrary& library) {
        find(library, version, "nvrtcVersion");
        find(library, error_string, "nvrtcGetErrorString");
        find(library, arch_count, "nvrtcGetNumSupportedArchs");
        find(library, archs, "nvrtcGetSupportedArchs");
        find(library, create_program, "nvrtcCreateProgram");
        find(library, destroy_program, "nvrtcDestroyProgram");
        find(library, add_name_expression, "nvrtcAddNameExpression");
        find(library, compile_program, "nvrtcCompileProgram");
        find(library, log_size, "nvrtcGetProgramLogSize");
        find(library, log, "nvrtcGetProgramLog");
        find(library, ptx_size, "nvrtcGetPTXSize");
        find(library, ptx, "nvrtcGetPTX");
        find(library, cubin_size, "nvrtcGetCUBINSize");
        find(library, cubin, "nvrtcGetCUBIN");
        find(library, lowered_name, "nvrtcGetLoweredName");
        version(&loaded_version.major, &loaded_version.minor);
    }

    template <class Function>
    static void find(const DynamicLibrary& library, Function& function, const char* name) {
        function = reinterpret_cast<Function>(library.find(name));
        if (function == nullptr) {
            throw LibraryError(
                fmt::format("{} has no function {}: NVRTC 12.0 or newer is needed.", library.path(), name),
                {.library = "NVRTC", .paths_tried = {library.path()}, .loader_message = {}});
        }
    }

    void check(nvrtcResult result, const char* call) const {
        if (result == NVRTC_SUCCESS) return;
        throw LibraryError(fmt::format("NVRTC failed: {} answered {}.", call, error_string(result)),
                           {.library = "NVRTC", .paths_tried = {}, .loader_message = error_string(result)});
    }

    /// Reads a text by its size function and its copy function. Both sizes that count a terminating NUL drop
    /// it.
    template <class Size, class Copy>
    std::string read(nvrtcProgram program, Size size_of, Copy copy, const char* call, bool terminated) const {
        std::size_t size = 0;
        check(size_of(program, &size), call);
        std::string text(size, '\0');
        if (size > 0) check(copy(program, text.data()), call);
        if (terminated && !text.empty() && text.back() == '\0') text.pop_back();
        return text;
    }
};

namespace {

/// Owns one nvrtcProgram.
class Program {
  public:
    Program(decltype(&::nvrtcDestroyProgram) destroy) : destroy_(destroy) {}
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
        if (handle_ != nullptr) destroy_(&handle_);
    }
    nvrtcProgram* address() noexcept { return &handle_; }
    nvrtcProgram get() const noexcept { return handle_; }

  private:
    decltype(&::nvrtcDestroyProgram) destroy_;
    nvrtcProgram handle_ = nullptr;
};

}  // namespace

ToolkitLocation default_toolkit() {
    ToolkitLocation location;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
        const char* root = std::getenv(variable);
        if (root != nullptr && *root != '\0') {
            location.nvrtc_libraries.push_back(fmt::format("{}/lib64/libnvrtc.so", root));
        }
    }
    location.nvrtc_libraries.emplace_back("/usr/local/cuda/lib64/libnvrtc.so");
    location.nvrtc_libraries.emplace_back("libnvrtc.so.13");
    location.nvrtc_libraries.emplace_back("libnvrtc.so.12");
    return location;
}

Nvrtc::Nvrtc(const ToolkitLocation& location)
    : library_(
          "NVRTC",
          location.nvrtc_libraries.empty() ? default_toolkit().nvrtc_libraries : location.nvrtc_libraries,
          advice),
      functions_(std::make_unique<Functions>(library_)),
      include_paths_(location.include_paths.empty() ? headers_beside(library_.path())
                                                    : existing(location.include_paths)) {}

Nvrtc::~Nvrtc() = default;

Nvrtc::Version Nvrtc::version() const noexcept { return functions_->loaded_version; }
const std::string& Nvrtc::path() const noexcept { return library_.path(); }
const std::vector<std::string>& Nvrtc::include_paths() const noexcept { return include_paths_; }

std::vector<int> Nvrtc::supported_archs() const {
    int count = 0;
    functions_->check(functions_->arch_count(&count), "nvrtcGetNumSupportedArchs");
    std::vector<int> archs(static_cast<std::size_t>(count));
    functions_->check(functions_->archs(archs.data()), "nvrtcGetSupportedArchs");
    return archs;
}

Nvrtc::Result Nvrtc::compile(const std::string& text, const std::string& program_name,
                             std::span<const Header> headers, std::span<const std::string> options,
                             std::span<const std::string> name_expressions) const {
    const Functions& nvrtc = *functions_;
    std::vector<const char*> header_texts;
    std::vector<const char*> header_names;
    for (const Header& header : headers) {
        header_texts.push_back(header.text.c_str());
        header_names.push_back(header.name.c_str());
    }
    std::vector<const char*> arguments;
    for (const std::string& option : options) arguments.push_back(option.c_str());

    Program program(nvrtc.destroy_program);
    nvrtc.check(
        nvrtc.create_program(program.address(), text.c_str(), program_name.c_str(),
                             static_cast<int>(headers.size()), header_texts.data(), header_names.data()),
        "nvrtcCreateProgram");
    for (const std::string& expression : name_expressions) {
        nvrtc.check(nvrtc.add_name_expression(program.get(), expression.c_str()), "nvrtcAddNameExpression");
    }

    Result result;
    nvrtcResult code = NVRTC_SUCCESS;
    const auto compile = [&] {
        const auto start = std::chrono::steady_clock::now();
        compile_count.fetch_add(1, std::memory_order_relaxed);
        code = nvrtc.compile_program(program.get(), static_cast<int>(arguments.size()), arguments.data());
        result.milliseconds =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    const bool replaces_handlers = version().major < 13 || (version().major == 13 && version().minor == 0);
    if (replaces_handlers) {
        run_with_signals_kept(compile);
    } else {
        compile();
    }

    result.log = nvrtc.read(program.get(), nvrtc.log_size, nvrtc.log, "nvrtcGetProgramLog", true);
    result.bad_option = code == NVRTC_ERROR_INVALID_OPTION;
    result.succeeded = code == NVRTC_SUCCESS;
    const bool refused =
        result.bad_option || code == NVRTC_ERROR_COMPILATION || code == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    if (!result.succeeded && refused) return result;
    nvrtc.check(code, "nvrtcCompileProgram");

    result.ptx = nvrtc.read(program.get(), nvrtc.ptx_size, nvrtc.ptx, "nvrtcGetPTX", true);
    std::size_t cubin_bytes = 0;
    if (nvrtc.cubin_size(program.get(), &cubin_bytes) == NVRTC_SUCCESS && cubin_bytes > 0) {
        result.cubin = nvrtc.read(program.get(), nvrtc.cubin_size, nvrtc.cubin, "nvrtcGetCUBIN", false);
    }
    for (const std::string& expression : name_expressions) {
        const char* lowered = nullptr;
        nvrtc.check(nvrtc.lowered_name(program.get(), expression.c_str(), &lowered), "nvrtcGetLoweredName");
        result.lowered_names.emplace_back(lowered);
    }
    return result;
}

std::uint64_t Nvrtc::compile_calls() noexcept { return compile_count.load(std::memory_order_relaxed); }

}  // namespace bascule
