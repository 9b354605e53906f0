#include "driver/code_calls/loadable_code.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "driver/process.hpp"

namespace emulated::driver {
namespace {

struct Version {
    int major = 0;
    int minor = 0;
    auto operator<=>(const Version&) const = default;
};

/// The newest PTX version of a driver, from the release notes of the PTX ISA: 8.5 is for CUDA 12.5 and 12.6, 9.N for 13.N.
Version newest_ptx(int driver) noexcept {
    const int minor = driver % 1000 / 10;
    if (driver >= 13000) return {9, minor};
    return {8, minor <= 5 ? minor : minor - 1};
}

/// The version in the first `.version` directive outside comments; 0.0 if there is none, which the parser reports.
Version version_of(std::string_view ptx) noexcept {
    std::size_t at = 0;
    while (at < ptx.size() && ptx[at] != '.') {
        const bool line = ptx.substr(at, 2) == "//";
        const bool block = ptx.substr(at, 2) == "/*";
        if (!line && !block) {
            ++at;
            continue;
        }
        const std::size_t end = line ? ptx.find('\n', at) : ptx.find("*/", at + 2);
        if (end == ptx.npos) return {};
        at = end + (line ? 1 : 2);
    }
    constexpr std::string_view directive = ".version";
    if (at >= ptx.size() || !ptx.substr(at).starts_with(directive)) return {};
    at = ptx.find_first_of("0123456789", at + directive.size());
    if (at == ptx.npos) return {};
    Version version;
    const char* const end = ptx.data() + ptx.size();
    const auto dot = std::from_chars(ptx.data() + at, end, version.major);
    if (dot.ptr != end && *dot.ptr == '.') std::from_chars(dot.ptr + 1, end, version.minor);
    return version;
}

// Fields of an ELF header: NVIDIA's ABI, and e_flags, which contain the architecture.
constexpr std::size_t elf_os_abi = 7;
constexpr std::size_t elf_flags = 48;
constexpr unsigned char abi_of_cuda_13 = 0x41;

/// Returns 80 for sm_80. CUDA 13 moved the number to the second byte.
int architecture_of(const unsigned char* cubin) noexcept {
    return cubin[elf_os_abi] == abi_of_cuda_13 ? cubin[elf_flags + 1] : cubin[elf_flags];
}

constexpr std::array<unsigned char, 4> elf = {0x7f, 'E', 'L', 'F'};
constexpr std::array<unsigned char, 4> fat_binary = {0x50, 0xed, 0x55, 0xba};
constexpr std::array<unsigned char, 4> wrapper = {0xb1, 0x43, 0x62, 0x46};

bool begins_with(const void* code, const std::array<unsigned char, 4>& bytes) noexcept {
    return std::memcmp(code, bytes.data(), bytes.size()) == 0;
}

/// The position after a comment or string that begins at `at`; `at` if there is none.
std::size_t skip_unread(std::string_view ptx, std::size_t at) noexcept {
    const auto behind = [&](std::string_view end, std::size_t from) {
        const std::size_t found = ptx.find(end, from);
        return found == ptx.npos ? ptx.size() : found + end.size();
    };
    if (ptx.substr(at, 2) == "//") return behind("\n", at);
    if (ptx.substr(at, 2) == "/*") return behind("*/", at + 2);
    return ptx[at] == '"' ? behind("\"", at + 1) : at;
}

}  // namespace

bool is_machine_code(const void* code) noexcept {
    return begins_with(code, elf) || begins_with(code, fat_binary) || begins_with(code, wrapper);
}

CodeRefusal refusal_of_machine_code(const void* code) {
    const Environment& environment = Process::get().environment();
    const auto* bytes = static_cast<const unsigned char*>(code);
    if (begins_with(code, elf) && environment.named_driver != 0) {
        const bool of_cuda_13 = bytes[elf_os_abi] == abi_of_cuda_13;
        if (of_cuda_13 && environment.driver() < 13000) {
            return {CUDA_ERROR_INVALID_IMAGE,
                    fmt::format("this cubin is of CUDA 13, and the driver of CUDA {}.{} cannot read it",
                                environment.driver() / 1000, environment.driver() % 1000 / 10)};
        }
        if (const int architecture = architecture_of(bytes);
            architecture / 10 != environment.architecture / 10 || architecture > environment.architecture) {
            return {CUDA_ERROR_NO_BINARY_FOR_GPU,
                    fmt::format("this cubin is for sm_{}, and the device is sm_{}", architecture,
                                environment.architecture)};
        }
    }
    return {CUDA_ERROR_NO_BINARY_FOR_GPU,
            fmt::format("this is machine code for a GPU, and the emulated device runs PTX: compile for "
                        "compute_{} and pass the PTX",
                        environment.architecture)};
}

std::variant<std::shared_ptr<const program::Module>, CodeRefusal> load_ptx(std::string_view text) {
    const Environment& environment = Process::get().environment();
    if (!environment.compiles_ptx) {
        return CodeRefusal{CUDA_ERROR_JIT_COMPILATION_DISABLED,
                           "CUDA_DISABLE_PTX_JIT is set: PTX is not compiled"};
    }
    if (environment.named_driver != 0) {
        const Version version = version_of(text);
        const Version newest = newest_ptx(environment.driver());
        if (version > newest) {
            return CodeRefusal{
                CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                fmt::format("this is PTX {}.{}, and the driver of CUDA {}.{} reads none newer than {}.{}",
                            version.major, version.minor, environment.driver() / 1000,
                            environment.driver() % 1000 / 10, newest.major, newest.minor)};
        }
    }
    auto loaded = program::load(text, environment.architecture);
    if (const auto* error = std::get_if<program::LoadError>(&loaded)) {
        return CodeRefusal{CUDA_ERROR_INVALID_PTX,
                           fmt::format("{}\n  PTX line {}", error->message, error->line)};
    }
    return std::get<std::shared_ptr<const program::Module>>(std::move(loaded));
}

std::string with_register_limit(std::string_view ptx, unsigned most) {
    if (most == 0) return std::string(ptx);
    constexpr std::string_view entry = ".entry";
    std::string made;
    std::size_t done = 0;
    for (std::size_t at = 0; at < ptx.size();) {
        if (const std::size_t next = skip_unread(ptx, at); next != at) {
            at = next;
            continue;
        }
        if (!ptx.substr(at).starts_with(entry)) {
            ++at;
            continue;
        }
        const std::size_t body = std::min(ptx.find_first_of("{;", at), ptx.size());
        const std::string_view head = ptx.substr(at, body - at);
        if (body < ptx.size() && ptx[body] == '{' && head.find(".maxnreg") == head.npos) {
            made += ptx.substr(done, body - done);
            made += fmt::format(" .maxnreg {} ", most);
            done = body;
        }
        at = body;
    }
    return made += ptx.substr(done);
}

unsigned number_of(CUjit_option which, unsigned count, const CUjit_option* options,
                   void* const* values) noexcept {
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == which) return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
    }
    return 0;
}

}  // namespace emulated::driver
