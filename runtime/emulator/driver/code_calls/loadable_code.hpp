// What a driver of the chosen version takes for code, and the codes by which it refuses the rest.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <cuda.h>

#include "program/module.hpp"

namespace emulated::driver {

/// Why code is not loaded, for the caller's log and for the report.
struct CodeRefusal {
    CUresult code = CUDA_ERROR_INVALID_IMAGE;
    std::string message;
};

/// Whether this is machine code, alone or in a container: nothing that runs here.
bool is_machine_code(const void* code) noexcept;
/// Why a driver of this version and device does not take it; last of all, because it is emulated.
CodeRefusal refusal_of_machine_code(const void* code);

/// Parses PTX, unless a driver of this version and device would refuse it.
std::variant<std::shared_ptr<const program::Module>, CodeRefusal> load_ptx(std::string_view text);

/// CU_JIT_MAX_REGISTERS: kernels that say nothing of it (.maxnreg) have at most so many registers a thread. 0: no limit.
std::string with_register_limit(std::string_view ptx, unsigned most);

/// The value of a JIT option; 0 where it is not given.
unsigned number_of(CUjit_option which, unsigned count, const CUjit_option* options,
                   void* const* values) noexcept;

}  // namespace emulated::driver
