// Tells which code a driver of the chosen version accepts, and with which error it refuses other code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <cuda.h>

#include "program/loaded_module.hpp"

namespace emulated::driver {

/// Why code cannot be loaded, for the caller's log and for the report.
struct CodeRefusal {
    CUresult code = CUDA_ERROR_INVALID_IMAGE;
    std::string message;
};

/// True for machine code, alone or in a container. It cannot run here.
bool is_machine_code(const void* code) noexcept;
/// Why a driver of this version and device refuses the machine code; if no other reason applies, because the device is
/// emulated.
CodeRefusal refusal_of_machine_code(const void* code);

/// Parses PTX, unless a driver of this version and device would refuse it.
std::variant<std::shared_ptr<const program::Module>, CodeRefusal> load_ptx(std::string_view text);

/// Applies CU_JIT_MAX_REGISTERS: limits the registers per thread of kernels without .maxnreg. 0 means no limit.
std::string with_register_limit(std::string_view ptx, unsigned most);

/// The value of a JIT option; 0 if it is not given.
unsigned number_of(CUjit_option which, unsigned count, const CUjit_option* options,
                   void* const* values) noexcept;

}  // namespace emulated::driver
