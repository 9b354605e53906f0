// What calls about managed memory check.
#pragma once

#include <cstddef>

#include <cuda.h>

namespace emulated::driver {

/// All of a range, in one live allocation.
bool is_managed(CUdeviceptr address, std::size_t bytes);

/// CUDA_SUCCESS, or why managed memory cannot be there.
CUresult check_location(const CUmemLocation& location);

}  // namespace emulated::driver
