// Which code of an image a device runs, and what to say where versions are the reason that it runs none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <bascule/jit/compile/nvrtc_choice.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

/// What an image may hold of one program.
enum class CodeForm : std::uint8_t {
    cubin,  ///< machine code
    ptx,    ///< text that the driver compiles
};

/// Whether a device of this architecture runs code for `code` in this form. Machine code runs within its major version, on
/// the same or a newer minor one; PTX on everything newer. With the suffix `a` both run on that architecture alone, with `f` in
/// its family.
bool runs_on(CodeForm form, Arch code, Arch device) noexcept;

/// Why a driver may not take the code of this NVRTC, with what to install; empty where the versions fit.
std::string version_conflict(CudaVersion nvrtc, CudaVersion driver);

/// What to do after the driver refused code with this CUresult, as a sentence; empty where the result says enough. `nvrtc`,
/// "13.0", wrote the code.
std::string advice_for_refusal(int refusal, const std::string& nvrtc, int driver);

/// Whether the error log of the driver's assembler or linker says more than warnings and notes, which drivers write there too
/// about code that they take.
bool names_an_error(std::string_view log) noexcept;

}  // namespace bascule
