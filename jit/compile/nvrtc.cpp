#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>
#include <nvrtc.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/process/compile_thread.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>

namespace bascule {
namespace {

std::atomic<std::uint64_t> compile_count{0};
std::atomic<bool> compiles_are_held{false};

constexpr const char* too_old = "{} has no function {}: NVRTC 12.0 or newer is needed.";
constexpr const char* advice =
    "Install one with `pip install nvidia-cuda-nvrtc`, or a CUDA toolkit, or name the library: "
    "bascule.config.nvrtc_library (Python), ToolkitLocation::nvrtc_libraries (C++).";

/// Opens one of the named libraries or, without names, one in the usual places: the first that loads. Those that the
/// driver accepts are tried first (by_preference).
DynamicLibrary open_nvrtc(const std::vector<std::string>& named, const DriverLimit& limit) {
    if (!named.empty()) return {"NVRTC", by_preference({named}, limit), advice};
    const std::vector<NvrtcPlace> places = nvrtc_places();
    std::vector<std::vector<std::string>> libraries;
    libraries.reserve(places.size());
    for (const NvrtcPlace& place : places) libraries.push_back(place.libraries);
    return {"NVRTC", by_preference(libraries, limit), advice_without_nvrtc(places)};
}

/// Finds the builtins library that NVRTC opens at the first compile: in its own directory, or where the loader looks.
/// Returns its path; empty if there is none.
std::string builtins_beside(const std::string& library, Nvrtc::Version version) {
    const std::string name = "libnvrtc-builtins.so." + to_string(version);
    const std::filesystem::path beside = std::filesystem::path(library).parent_path() / name;
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) return beside.string();
    try {
        return DynamicLibrary("NVRTC's builtins", {name}, "").path();
    } catch (const LibraryError&) {
        return {};
    }
}

std::string identity_of(const std::string& library, Nvrtc::Version version) {
    const std::string own = library_identity(library);
    const std::string builtins = library_identity(builtins_beside(library, version));
    if (own.empty() || builtins.empty()) return {};
    return fmt::format("{}, {}, builtins {}", to_string(version), own, builtins);
}

}  // namespace

// X(member, function): the functions that all versions since 12.0 have.
#define BASCULE_NVRTC_FUNCTIONS(X)                 \
    X(version, nvrtcVersion)                       \
    X(error_string, nvrtcGetErrorString)           \
    X(arch_count, nvrtcGetNumSupportedArchs)       \
    X(archs, nvrtcGetSupportedArchs)               \
    X(create_program, nvrtcCreateProgram)          \
    X(destroy_program, nvrtcDestroyProgram)        \
    X(add_name_expression, nvrtcAddNameExpression) \
    X(compile_program, nvrtcCompileProgram)        \
    X(log_size, nvrtcGetProgramLogSize)            \
    X(log, nvrtcGetProgramLog)                     \
    X(ptx_size, nvrtcGetPTXSize)                   \
    X(ptx, nvrtcGetPTX)                            \
    X(cubin_size, nvrtcGetCUBINSize)               \
    X(cubin, nvrtcGetCUBIN)                        \
    X(lowered_name, nvrtcGetLoweredName)

struct Nvrtc::Functions {
#define BASCULE_MEMBER(member, function) decltype(&::function) member;
    BASCULE_NVRTC_FUNCTIONS(BASCULE_MEMBER)
#undef BASCULE_MEMBER
    // NVRTC has these since 12.8; null before.
    nvrtcResult (*get_pch_heap)(std::size_t*);
    nvrtcResult (*set_pch_heap)(std::size_t);
    Version loaded_version;
    std::vector<int> supported_archs;

    explicit Functions(const DynamicLibrary& library) {
#define BASCULE_FIND(member, function) \
    member = reinterpret_cast<decltype(member)>(library.require(#function, too_old));
        BASCULE_NVRTC_FUNCTIONS(BASCULE_FIND)
#undef BASCULE_FIND
        get_pch_heap = reinterpret_cast<decltype(get_pch_heap)>(library.find("nvrtcGetPCHHeapSize"));
        set_pch_heap = reinterpret_cast<decltype(set_pch_heap)>(library.find("nvrtcSetPCHHeapSize"));
        version(&loaded_version.major, &loaded_version.minor);
        int count = 0;
        check(arch_count(&count), "nvrtcGetNumSupportedArchs");
        supported_archs.resize(static_cast<std::size_t>(count));
        check(archs(supported_archs.data()), "nvrtcGetSupportedArchs");
    }

    void check(nvrtcResult result, const char* call) const {
        if (result == NVRTC_SUCCESS) return;
        throw LibraryError(fmt::format("NVRTC failed: {} returned {}.", call, error_string(result)),
                           {.library = "NVRTC", .paths_tried = {}, .loader_message = error_string(result)});
    }

    /// Reads a text by its size and copy functions. If it is `terminated`, the size counts a NUL, which is removed.
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

Nvrtc::Nvrtc(const ToolkitLocation& location, const DriverLimit& limit)
    : library_(open_nvrtc(location.nvrtc_libraries, limit)),
      functions_(std::make_unique<Functions>(library_)),
      include_paths_(header_search_path(
          location.include_paths, library_.path(),
          1000 * functions_->loaded_version.major + 10 * functions_->loaded_version.minor)),
      found_include_paths_(location.include_paths.empty() || location.found_include_paths),
      identity_(identity_of(library_.path(), functions_->loaded_version)) {
    close_gate_at_exit();
}

Nvrtc::~Nvrtc() = default;

Nvrtc::Version Nvrtc::version() const noexcept { return functions_->loaded_version; }
const std::vector<int>& Nvrtc::supported_archs() const noexcept { return functions_->supported_archs; }

Arch Nvrtc::nearest(Arch device) const {
    const int wanted = 10 * device.major + device.minor;
    int newest = 0;
    for (const int known : supported_archs()) {
        if (known <= wanted) newest = std::max(newest, known);
    }
    if (newest == wanted || newest == 0) return device;
    return {.major = newest / 10, .minor = newest % 10, .suffix = '\0', .is_virtual = true};
}

Arch Nvrtc::own_target(Arch device) const {
    Arch target = nearest(device);
    if (!target.is_virtual && target.major >= 9 && target.suffix == '\0') target.suffix = 'a';
    return target;
}

bool Nvrtc::has_precompiled_headers() const noexcept {
    return functions_->get_pch_heap != nullptr && functions_->set_pch_heap != nullptr;
}

void Nvrtc::enlarge_precompiled_header_heap() const {
    // Set only once, because a heap that is in use must not be replaced. Unused parts of the heap take no memory.
    constexpr std::size_t enough = std::size_t{1} << 30;  // CUB of CUDA 13.5 needs 310 MB
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::size_t bytes = 0;
    functions_->check(functions_->get_pch_heap(&bytes), "nvrtcGetPCHHeapSize");
    if (bytes < enough) functions_->check(functions_->set_pch_heap(enough), "nvrtcSetPCHHeapSize");
}

Nvrtc::Result Nvrtc::run(const std::string& text, const std::string& program_name,
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

    const InsideNvrtc inside;
    nvrtcProgram program = nullptr;
    nvrtc.check(
        nvrtc.create_program(&program, text.c_str(), program_name.c_str(), static_cast<int>(headers.size()),
                             header_texts.data(), header_names.data()),
        "nvrtcCreateProgram");
    const std::unique_ptr<nvrtcProgram, decltype(nvrtc.destroy_program)> owner(&program,
                                                                               nvrtc.destroy_program);
    for (const std::string& expression : name_expressions) {
        nvrtc.check(nvrtc.add_name_expression(program, expression.c_str()), "nvrtcAddNameExpression");
    }

    Result result;
    nvrtcResult code = NVRTC_SUCCESS;
    const auto compile = [&] {
        compiles_are_held.wait(true);
        const auto start = std::chrono::steady_clock::now();
        compile_count.fetch_add(1, std::memory_order_relaxed);
        run_on_large_stack([&] {
            code = nvrtc.compile_program(program, static_cast<int>(arguments.size()), arguments.data());
        });
        result.milliseconds =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        static std::once_flag builtins_loaded;
        std::call_once(builtins_loaded, &close_gate_at_exit);
    };
    const bool replaces_handlers = version().major < 13 || (version().major == 13 && version().minor == 0);
    if (replaces_handlers) {
        run_keeping_signal_handlers(reinterpret_cast<const void*>(nvrtc.compile_program), compile);
    } else {
        compile();
    }

    result.log = nvrtc.read(program, nvrtc.log_size, nvrtc.log, "nvrtcGetProgramLog", true);
    result.bad_option = code == NVRTC_ERROR_INVALID_OPTION;
    result.succeeded = code == NVRTC_SUCCESS;
    const bool refused =
        result.bad_option || code == NVRTC_ERROR_COMPILATION || code == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    if (!result.succeeded && refused) return result;
    nvrtc.check(code, "nvrtcCompileProgram");

    result.ptx = nvrtc.read(program, nvrtc.ptx_size, nvrtc.ptx, "nvrtcGetPTX", true);
    std::size_t cubin_bytes = 0;
    if (nvrtc.cubin_size(program, &cubin_bytes) == NVRTC_SUCCESS && cubin_bytes > 0) {
        result.cubin = nvrtc.read(program, nvrtc.cubin_size, nvrtc.cubin, "nvrtcGetCUBIN", false);
    }
    for (const std::string& expression : name_expressions) {
        const char* lowered = nullptr;
        nvrtc.check(nvrtc.lowered_name(program, expression.c_str(), &lowered), "nvrtcGetLoweredName");
        result.lowered_names.emplace_back(lowered);
    }
    return result;
}

std::uint64_t Nvrtc::compile_calls() noexcept { return compile_count.load(std::memory_order_relaxed); }

void Nvrtc::hold_compiles(bool hold) noexcept {
    compiles_are_held.store(hold);
    compiles_are_held.notify_all();
}

}  // namespace bascule
