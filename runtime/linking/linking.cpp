#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/link/nvjitlink.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/kernels/image_source.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/linking/linking.hpp>

namespace bascule {
namespace {

// --- Linkers

/// The options of a link. The driver writes to the log while this object lives.
struct LinkOptions {
    std::array<char, 8192> log{};
    std::vector<CUjit_option> names;
    std::vector<void*> values;

    explicit LinkOptions(const CompileOptions& how) {
        add(CU_JIT_ERROR_LOG_BUFFER, log.data());
        add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(log.size() - 1));
        if (how.lineinfo) add(CU_JIT_GENERATE_LINE_INFO, number(1));
        if (how.debug) add(CU_JIT_GENERATE_DEBUG_INFO, number(1));
        if (how.max_registers)
            add(CU_JIT_MAX_REGISTERS, number(static_cast<std::size_t>(*how.max_registers)));
    }

  private:
    static void* number(std::size_t value) noexcept { return reinterpret_cast<void*>(value); }
    void add(CUjit_option name, void* value) {
        names.push_back(name);
        values.push_back(value);
    }
};

struct LinkDestroyer {
    void operator()(CUlinkState state) const {
        const Driver& driver = Driver::get();
        driver.report(driver.api().cuLinkDestroy(state), "ending a link");
    }
};

/// The driver's linker, for machines without nvJitLink and for the emulated device, which links PTX to PTX.
class DriverLinker final : public Linker {
  public:
    explicit DriverLinker(Device device) : device_(device) {}

    std::string name() const override {
        const Driver& driver = Driver::get();
        if (driver.emulated()) return "the emulated device";
        return fmt::format("the driver of CUDA {}.{}", driver.version() / 1000, driver.version() % 1000 / 10);
    }
    /// The result depends only on the driver's version and the device's architecture.
    std::string identity() const override { return name() + " for " + to_string(device_.capability()); }
    std::string link(std::span<const Code> codes, Arch arch, const CompileOptions& how) const override;

  private:
    Device device_;
};

std::string DriverLinker::link(std::span<const Code> codes, Arch arch, const CompileOptions& how) const {
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    LinkOptions options(how);
    const auto check = [&](DriverResult result, const std::string& doing) {
        if (result == CUDA_SUCCESS) return;
        const std::string log = options.log.data();
        if (names_an_error(log))
            throw CompileError(fmt::format("{}, by {}: {}", doing, name(), log),
                               {.log = log, .architecture = to_string(arch)});
        driver.check(result, log.empty() ? doing : fmt::format("{} (the driver says: {})", doing, log));
    };
    CUlinkState state = nullptr;
    check(driver.api().cuLinkCreate(static_cast<unsigned int>(options.names.size()), options.names.data(),
                                    options.values.data(), &state),
          "linking");
    const std::unique_ptr<CUlinkState_st, LinkDestroyer> owner(state);
    for (const Code& code : codes) {
        const bool is_text = code.kind == CodeKind::ptx;
        std::string bytes = code.bytes;  // the driver takes a non-const pointer
        check(driver.api().cuLinkAddData(state, is_text ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN, bytes.data(),
                                         bytes.size() + (is_text ? 1 : 0), code.name.c_str(), 0, nullptr,
                                         nullptr),
              fmt::format("linking {}", code.name));
    }
    void* image = nullptr;
    std::size_t bytes = 0;
    check(driver.api().cuLinkComplete(state, &image, &bytes), "linking");
    std::string linked(static_cast<const char*>(image), bytes);
    while (kind_of_code(linked) == CodeKind::ptx && linked.ends_with('\0')) linked.pop_back();
    return linked;
}

[[noreturn]] void fail_without_nvjitlink(const std::string& what) {
    throw LibraryError(
        fmt::format("{} needs nvJitLink of NVRTC's version or a newer one, which was not found. Install it "
                    "with `pip install nvidia-nvjitlink`, in NVRTC's version.",
                    what),
        {.library = "nvJitLink"});
}

// --- Precompiled code

/// Precompiled code as an image source. It has one image, whatever architecture is asked for.
class LoadedCode final : public ImageSource {
  public:
    LoadedCode(Code code, std::shared_ptr<const Image> image)
        : code_(std::move(code)), image_(std::move(image)) {}

    Cache::Lookup image(Arch) const override { return {.image = image_, .origin = Origin::memory}; }
    std::vector<ProbedProgram> programs(Arch) const override { return {}; }
    std::vector<LinkedPart> parts() const override { return {code_}; }

  private:
    Code code_;
    std::shared_ptr<const Image> image_;
};

/// Compiles LTO-IR to code for the device.
Code compile_lto_ir(const Code& code, Cache& cache, Device device) {
    const std::shared_ptr<const Nvrtc> nvrtc = cache.nvrtc();
    const std::shared_ptr<const Linker> linker = find_nvjitlink(*nvrtc);
    if (linker == nullptr) fail_without_nvjitlink(code.name + " is LTO-IR, and loading it");
    Code made{code.name, linker->link({&code, 1}, nvrtc->nearest(device.arch()), {}), CodeKind::unknown};
    made.kind = kind_of_code(made.bytes);
    return made;
}

void refuse_unfit(const Code& code, Arch arch, Device device) {
    const bool is_text = code.kind == CodeKind::ptx;
    if (!is_text && device.emulated()) {
        reject(ErrorKind::value,
               "{} is {}, machine code of a GPU, and the emulated device runs PTX: load the PTX that it was "
               "made of.",
               code.name, to_string(code.kind));
    }
    if (runs_on(is_text ? CodeForm::ptx : CodeForm::cubin, arch, device.capability())) return;
    reject(ErrorKind::value, "{} is {} for {}, and device {} ({}) is {}: load code for that.", code.name,
           to_string(code.kind), to_string(arch), device.ordinal(), device.name(),
           to_string(device.capability()));
}

// --- Several texts

constexpr const char* relocatable = "-rdc=true";

LinkedText text_of(Source source, CompileOptions options, std::vector<Instance> instances) {
    if (std::ranges::find(options.extra, relocatable) == options.extra.end())
        options.extra.emplace_back(relocatable);
    source.text = without_byte_order_mark(source.text);
    return {std::move(source), std::move(options), std::move(instances)};
}

/// The text's name in messages about symbols, which distinguishes texts of one file.
std::string place_of(const Source& source) {
    return source.first_line > 1 ? fmt::format("{}:{}", source.name, source.first_line) : source.name;
}

/// Renames the second of two codes with equal names to "NAME (2)", and so on.
void number_equal_names(std::vector<Code>& codes) {
    std::map<std::string, int> uses;
    for (Code& code : codes) {
        if (const int number = ++uses[code.name]; number > 1) code.name += fmt::format(" ({})", number);
    }
}

/// Makes images by compiling and linking these parts, in order.
class LinkedTexts final : public ImageSource {
  public:
    LinkedTexts(std::vector<LinkedPart> parts, Source place, const CompileOptions& options, Cache& cache,
                Device device)
        : parts_(std::move(parts)),
          place_(std::move(place)),
          options_(options),
          cache_(cache),
          device_(device) {}

    Cache::Lookup image(Arch arch) const override {
        std::vector<Code> codes;
        std::vector<KernelImage> kernels;
        bool is_older = false;  // NVRTC does not know the device yet, so it made PTX
        for (const LinkedPart& part : parts_) {
            if (const Code* code = std::get_if<Code>(&part)) {
                codes.push_back(*code);
                continue;
            }
            const Program program = program_of(std::get<LinkedText>(part), true, arch);
            const std::shared_ptr<const Image> image = cache_.image(program).image;
            is_older = is_older || image->arch != arch;
            const bool takes_machine_code = !image->cubin.empty();
            codes.push_back({place_of(program.source), takes_machine_code ? image->cubin : image->ptx,
                             takes_machine_code ? CodeKind::cubin : CodeKind::ptx});
            kernels.insert(kernels.end(), image->kernels.begin(), image->kernels.end());
        }
        number_equal_names(codes);
        Program link{.source = place_, .options = options_, .arch = arch};
        link.purpose = Program::Purpose::made;
        link.maker = std::make_shared<LinkedImage>(codes, std::move(kernels), options_,
                                                   linker_for(codes, arch, is_older));
        return cache_.image(link);
    }

    std::vector<ProbedProgram> programs(Arch arch) const override {
        std::vector<ProbedProgram> programs;
        for (const LinkedPart& part : parts_) {
            if (const auto* text = std::get_if<LinkedText>(&part)) {
                Program program = program_of(*text, true, arch);
                Cache::Lookup made = cache_.image(program);
                programs.push_back({std::move(program), std::move(made), cache_});
            }
        }
        return programs;
    }

    std::vector<LinkedPart> parts() const override { return parts_; }

  private:
    std::shared_ptr<const Linker> linker_for(const std::vector<Code>& codes, Arch arch, bool is_older) const {
        const bool has_lto_ir =
            std::ranges::any_of(codes, [](const Code& code) { return code.kind == CodeKind::lto_ir; });
        std::shared_ptr<const Linker> nvjitlink;
        if (has_lto_ir || (!arch.is_virtual && !is_older)) nvjitlink = find_nvjitlink(*cache_.nvrtc());
        if (nvjitlink != nullptr) return nvjitlink;
        if (has_lto_ir) fail_without_nvjitlink("linking LTO-IR");
        if (!arch.is_virtual && arch != device_.capability())
            fail_without_nvjitlink(
                fmt::format("linking for {}, which is not the device's architecture,", to_string(arch)));
        return std::make_shared<DriverLinker>(device_);
    }

    std::vector<LinkedPart> parts_;
    Source place_;
    CompileOptions options_;
    Cache& cache_;
    Device device_;
};

void add_parts(const LinkPart& part, const CompileOptions& options, std::vector<LinkedPart>& parts) {
    if (const auto* source = std::get_if<Source>(&part)) {
        parts.emplace_back(text_of(*source, options, {}));
    } else if (const auto* code = std::get_if<Code>(&part)) {
        parts.emplace_back(*code);
    } else {
        const auto& module = std::get<Module>(part);
        if (const std::shared_ptr<const ImageSource> images = module.images()) {
            for (LinkedPart& each : images->parts()) parts.push_back(std::move(each));
        } else {
            parts.emplace_back(text_of(module.source(), module.options(), module.instances()));
        }
    }
}

const std::string& name_of(const LinkedPart& part) {
    const auto* code = std::get_if<Code>(&part);
    return code != nullptr ? code->name : std::get<LinkedText>(part).source.name;
}

}  // namespace

Code code_from_bytes(std::string bytes, std::string name) {
    const CodeKind kind = kind_of_code(bytes);
    if (kind == CodeKind::ptx) bytes.resize(std::min(bytes.find('\0'), bytes.size()));
    if (kind == CodeKind::unknown) {
        reject(ErrorKind::value, "{} is neither PTX nor a cubin nor LTO-IR{}.", name,
               bytes.find("__global__") != bytes.npos ? ": it is CUDA C++, which is compiled" : "");
    }
    if (kind == CodeKind::fat_binary) {
        reject(ErrorKind::value,
               "{} is a fat binary, which has code for several devices: take the one for yours out of it, "
               "`cuobjdump -xelf all` or `cuobjdump -xptx all`.",
               name);
    }
    return {std::move(name), std::move(bytes), kind};
}

Code read_code(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::error_code error;
    if (!file || std::filesystem::is_directory(path, error)) read_source(path);  // throws the system's error
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return code_from_bytes(std::move(bytes), path);
}

Module load_module(Code code, Device device) {
    Cache& cache = Cache::process_default();
    if (code.kind == CodeKind::lto_ir) code = compile_lto_ir(code, cache, device);
    auto image = std::make_shared<const Image>(image_of_code(code));
    refuse_unfit(code, image->arch, device);
    Source place;
    place.name = code.name;
    CompileOptions options;
    options.arch = image->arch;
    Module module(std::make_shared<LoadedCode>(std::move(code), std::move(image)), std::move(place),
                  std::move(options), cache, device);
    module.library(device);
    return module;
}

Module load_module(const std::string& path, Device device) { return load_module(read_code(path), device); }

Module link(const std::vector<LinkPart>& given, const CompileOptions& options, Cache& cache, Device device) {
    if (given.empty())
        reject(ErrorKind::value, "there is nothing to link: pass at least one text, module or code.");
    std::vector<LinkedPart> parts;
    for (const LinkPart& part : given) add_parts(part, options, parts);
    std::vector<std::string> names;
    for (const LinkedPart& part : parts) {
        if (std::ranges::find(names, name_of(part)) == names.end()) names.push_back(name_of(part));
        if (const auto* text = std::get_if<LinkedText>(&part)) remember_place(text->source, text->options);
    }
    Source place;
    place.name = fmt::format("{}", fmt::join(names, " + "));
    auto images = std::make_shared<LinkedTexts>(std::move(parts), place, options, cache, device);
    return Module(std::move(images), std::move(place), options, cache, device);
}

}  // namespace bascule
