#include <array>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/code_choice.hpp>
#include <bascule/runtime/linking/driver_linker.hpp>

namespace bascule {
namespace {

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

}  // namespace

std::string DriverLinker::name() const {
    const Driver& driver = Driver::get();
    if (driver.emulated()) return "the emulated device";
    return fmt::format("the driver of CUDA {}.{}", driver.version() / 1000, driver.version() % 1000 / 10);
}

/// The result depends only on the driver's version and the device's architecture.
std::string DriverLinker::identity() const { return name() + " for " + to_string(device_.capability()); }

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

}  // namespace bascule
