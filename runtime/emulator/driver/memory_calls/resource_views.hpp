// Resource views: the levels and layers of an array that a texture reads, and what it takes their texels for.
#pragma once

#include <cuda.h>

#include "memory/images.hpp"

namespace emulated::driver {

/// Leaves of an object over a whole array what the view shows. Refused, with a report, where it shows none.
CUresult narrow_to_view(memory::ImageObject& object, const CUDA_RESOURCE_VIEW_DESC& view, const char* name);

}  // namespace emulated::driver
