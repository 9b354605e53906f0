// Where managed memory should be: hints, for it is in one place here. What is checked is that they are about
// managed memory, and a place that there is.
#include "driver/memory_calls/managed.hpp"

#include "driver/call.hpp"

namespace emulated::driver {

bool is_managed(CUdeviceptr address, std::size_t bytes) {
    const memory::Allocation* allocation = Process::get().heap().find(address);
    return allocation != nullptr && allocation->kind == memory::Allocation::Kind::managed && bytes > 0 &&
           bytes <= allocation->bytes - (address - allocation->base);
}

CUresult check_location(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return Process::get().is_device(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

/// Advice whose location says nothing.
bool ignores_location(CUmem_advise advice) noexcept {
    return advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
           advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

}  // namespace

EMULATED_STREAM_API(cuMemPrefetchAsync, 12020, CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                    unsigned int flags, CUstream handle) {
    EMULATED_STREAM(target, handle);
    EMULATED_REQUIRE(flags == 0 && is_managed(address, bytes), CUDA_ERROR_INVALID_VALUE);
    return check_location(location);
}

EMULATED_CONTEXT_API(cuMemAdvise, 12020, CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                     CUmemLocation location) {
    const bool known = advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    EMULATED_REQUIRE(known && is_managed(address, bytes), CUDA_ERROR_INVALID_VALUE);
    return ignores_location(advice) ? CUDA_SUCCESS : check_location(location);
}

/// The whole of an allocation, and a stream of one's own where it is to be that stream's alone.
EMULATED_STREAM_API(cuStreamAttachMemAsync, 6000, CUstream handle, CUdeviceptr address, std::size_t bytes,
                    unsigned int flags) {
    EMULATED_STREAM(target, handle);
    const bool one_flag =
        flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    const bool for_null = flags == CU_MEM_ATTACH_SINGLE && target.owner == nullptr;
    EMULATED_REQUIRE(one_flag && !for_null && is_managed(address, 1), CUDA_ERROR_INVALID_VALUE);
    const memory::Allocation* allocation = Process::get().heap().find(address);
    const bool whole = address == allocation->base && (bytes == 0 || bytes == allocation->bytes);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace emulated::driver
