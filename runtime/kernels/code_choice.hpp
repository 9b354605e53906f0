// Decides which code of an image a device can run, and explains refusals that versions cause.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/options/compile_options.hpp>

namespace bascule {

/// The forms of code that an image may contain.
enum class CodeForm : std::uint8_t {
    cubin,  ///< machine code
    ptx,    ///< text that the driver compiles
};

/// Whether a device of architecture `device` runs code for `code` in this form. Machine code runs on the same or a
/// newer minor version of its major version, but a Tegra device runs only its own. PTX runs on the same and all newer
/// architectures. With the suffix `a`, both run only on that architecture; with `f`, only in its family.
bool runs_on(CodeForm form, Arch code, Arch device) noexcept;

/// Why a driver may refuse code of this NVRTC version, with advice on what to install. Empty if the versions are compatible.
std::string version_conflict(CudaVersion nvrtc, CudaVersion driver);

/// A sentence of advice after the driver refused code with the CUresult `refusal`. Empty if the result says enough.
/// `nvrtc` is the version of the NVRTC that compiled the code, for example "13.0"; `driver` is as in Driver::version.
std::string advice_for_refusal(int refusal, const std::string& nvrtc, int driver);

/// Whether the error log of the driver's assembler or linker contains more than warnings and notes, which drivers also
/// write about code that they accept.
bool names_an_error(std::string_view log) noexcept;

}  // namespace bascule
