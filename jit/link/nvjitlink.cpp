#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/link/nvjitlink.hpp>
#include <bascule/jit/process/dynamic_library.hpp>

namespace bascule {
namespace {

// The declarations of nvJitLink.h, which is missing in toolkits without the library.
using Handle = struct nvJitLink*;
enum Result : int { success = 0 };
enum InputType : int { cubin_input = 1, ptx_input = 2, lto_ir_input = 3 };

// X(member, function, parameters)
#define BASCULE_NVJITLINK_FUNCTIONS(X)                                                        \
    X(create, nvJitLinkCreate, (Handle*, std::uint32_t, const char**))                        \
    X(destroy, nvJitLinkDestroy, (Handle*))                                                   \
    X(add_data, nvJitLinkAddData, (Handle, InputType, const void*, std::size_t, const char*)) \
    X(complete, nvJitLinkComplete, (Handle))                                                  \
    X(cubin_size, nvJitLinkGetLinkedCubinSize, (Handle, std::size_t*))                        \
    X(cubin, nvJitLinkGetLinkedCubin, (Handle, void*))                                        \
    X(ptx_size, nvJitLinkGetLinkedPtxSize, (Handle, std::size_t*))                            \
    X(ptx, nvJitLinkGetLinkedPtx, (Handle, char*))                                            \
    X(log_size, nvJitLinkGetErrorLogSize, (Handle, std::size_t*))                             \
    X(log, nvJitLinkGetErrorLog, (Handle, char*))

constexpr const char* lacking = "{} lacks {}: it is another library, or older than CUDA 12.";

struct Functions {
#define BASCULE_MEMBER(member, function, parameters) Result(*member) parameters;
    BASCULE_NVJITLINK_FUNCTIONS(BASCULE_MEMBER)
#undef BASCULE_MEMBER

    explicit Functions(const DynamicLibrary& library) {
#define BASCULE_FIND(member, function, parameters) \
    member = reinterpret_cast<decltype(member)>(library.require(#function, lacking));
        BASCULE_NVJITLINK_FUNCTIONS(BASCULE_FIND)
#undef BASCULE_FIND
    }
};

class NvJitLink final : public Linker {
  public:
    NvJitLink(DynamicLibrary library, CudaVersion version)
        : library_(std::move(library)), functions_(library_), version_(version) {}

    std::string name() const override { return fmt::format("nvJitLink {}", to_string(version_)); }
    std::string identity() const override {
        const std::string build = library_identity(library_.path());
        return "nvJitLink " + (build.empty() ? library_.path() : build);
    }

    std::string link(std::span<const Code> codes, Arch arch, const CompileOptions& how) const override {
        std::vector<std::string> options = options_for(codes, arch, how);
        std::vector<const char*> pointers;
        pointers.reserve(options.size());
        for (const std::string& option : options) pointers.push_back(option.c_str());
        Handle handle = nullptr;
        const Result created =
            functions_.create(&handle, static_cast<std::uint32_t>(pointers.size()), pointers.data());
        const std::unique_ptr<Handle, Destroyer> owner(&handle, Destroyer{&functions_});
        check(created, handle, arch, "cannot link for this architecture or with these options");
        for (const Code& code : codes) {
            const bool is_text = code.kind == CodeKind::ptx;
            check(functions_.add_data(handle, input_type(code.kind), code.bytes.c_str(),
                                      code.bytes.size() + (is_text ? 1 : 0), code.name.c_str()),
                  handle, arch, fmt::format("refused {} ({})", code.name, to_string(code.kind)));
        }
        check(functions_.complete(handle), handle, arch, "could not link");
        return arch.is_virtual ? result(handle, functions_.ptx_size, functions_.ptx)
                               : result(handle, functions_.cubin_size, functions_.cubin);
    }

  private:
    struct Destroyer {
        const Functions* functions;
        void operator()(Handle* handle) const {
            if (*handle != nullptr) functions->destroy(handle);
        }
    };

    static InputType input_type(CodeKind kind) noexcept {
        if (kind == CodeKind::ptx) return ptx_input;
        return kind == CodeKind::lto_ir ? lto_ir_input : cubin_input;
    }

    static std::vector<std::string> options_for(std::span<const Code> codes, Arch arch,
                                                const CompileOptions& how) {
        Arch real = arch;
        real.is_virtual = false;
        std::vector<std::string> options = {"-arch=" + to_string(real)};
        const bool optimises =
            std::ranges::any_of(codes, [](const Code& code) { return code.kind == CodeKind::lto_ir; });
        if (optimises) options.emplace_back("-lto");
        if (arch.is_virtual) options.emplace_back("-ptx");
        if (how.lineinfo) options.emplace_back("-lineinfo");
        if (how.debug) options.emplace_back("-g");
        if (how.max_registers) options.push_back(fmt::format("-maxrregcount={}", *how.max_registers));
        return options;
    }

    void check(Result result, Handle handle, Arch arch, const std::string& what) const {
        if (result == success) return;
        std::string log;
        std::size_t size = 0;
        if (handle != nullptr && functions_.log_size(handle, &size) == success && size > 0) {
            log.resize(size);
            functions_.log(handle, log.data());
            log.resize(std::min(log.find('\0'), log.size()));
            while (log.ends_with('\n')) log.pop_back();
        }
        throw CompileError(fmt::format("{} {}{}{}", name(), what, log.empty() ? "." : ": ", log),
                           {.log = log, .architecture = to_string(arch)});
    }

    template <class Size, class Get>
    std::string result(Handle handle, Size size_of, Get get) const {
        std::size_t size = 0;
        std::string bytes;
        if (size_of(handle, &size) == success) {
            bytes.resize(size);
            if (get(handle, bytes.data()) == success) {
                while (bytes.ends_with('\0') && kind_of_code(bytes) == CodeKind::ptx) bytes.pop_back();
                return bytes;
            }
        }
        throw LibraryError(fmt::format("{} linked the code and does not give it out.", name()),
                           {.library = "nvJitLink", .paths_tried = {library_.path()}});
    }

    DynamicLibrary library_;
    Functions functions_;
    CudaVersion version_;
};

/// The paths at which this NVRTC's nvJitLink may be: in toolkits and wheels of CUDA 13 it is in the same directory, for
/// CUDA 12 in a wheel of its own.
std::vector<std::string> candidates(const Nvrtc& nvrtc) {
    const std::string file = fmt::format("libnvJitLink.so.{}", nvrtc.version().major);
    const std::filesystem::path directory = std::filesystem::path(nvrtc.path()).parent_path();
    std::vector<std::string> found;
    for (const auto& path : {directory / file, directory / ".." / ".." / "nvjitlink" / "lib" / file}) {
        std::error_code error;
        if (std::filesystem::exists(path, error)) found.push_back(path.string());
    }
    found.push_back(file);  // found by the loader
    return found;
}

/// The library's version. Before CUDA 12.3 the library does not report it; it is then taken to be `otherwise`.
CudaVersion version_of(const DynamicLibrary& library, CudaVersion otherwise) {
    using Ask = Result (*)(unsigned int*, unsigned int*);
    const auto ask = reinterpret_cast<Ask>(library.find("nvJitLinkVersion"));
    unsigned int major = 0, minor = 0;
    if (ask == nullptr || ask(&major, &minor) != success) return otherwise;
    return {static_cast<int>(major), static_cast<int>(minor)};
}

}  // namespace

std::shared_ptr<const Linker> find_nvjitlink(const Nvrtc& nvrtc) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const Linker>> known;  // by the NVRTC's path
    const std::lock_guard lock(mutex);
    const auto [place, is_new] = known.try_emplace(nvrtc.path());
    if (is_new) {
        try {
            DynamicLibrary library("nvJitLink", candidates(nvrtc), "");
            const CudaVersion version = version_of(library, nvrtc.version());
            // The loader may find an older library, which cannot read this NVRTC's output.
            if (version >= nvrtc.version())
                place->second = std::make_shared<NvJitLink>(std::move(library), version);
        } catch (const LibraryError&) {
            // The driver links instead.
        }
    }
    return place->second;
}

}  // namespace bascule
