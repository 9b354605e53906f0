// Hints about where managed memory should be, which is in one place here: what is checked is that they are about managed
// memory, and a place that there is. And batches: several copies, prefetches or discards in one call. "The batch as a whole
// executes in stream order": here one after another, which is one of the orders that callers must expect.
#include <span>

#include "driver/graph_nodes.hpp"
#include "driver/memory_calls/transfers.hpp"

namespace emulated::driver {
namespace {

/// All of a range, in one live allocation.
bool is_managed(CUdeviceptr address, std::size_t bytes) {
    const memory::Allocation* allocation = Process::get().heap().find(address);
    return allocation != nullptr && allocation->kind == memory::Allocation::Kind::managed && bytes > 0 &&
           bytes <= allocation->bytes - (address - allocation->base);
}

/// CUDA_SUCCESS, or why managed memory cannot be there.
CUresult check_location(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return Process::get().is_device(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

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

namespace {

/// Which of `count` operations each of several entries is for: from its index to the next one's. "The first entry must
/// always be 0 ... each entry must be greater than the previous entry and the last entry should be less than count."
bool covers(const std::size_t* first_of, std::size_t entries, std::size_t count) noexcept {
    if (entries == 0 || first_of == nullptr || first_of[0] != 0 || first_of[entries - 1] >= count)
        return false;
    for (std::size_t i = 1; i < entries; ++i) {
        if (first_of[i] <= first_of[i - 1]) return false;
    }
    return true;
}

/// "Must not be legacy NULL stream."
CUresult stream_of_its_own(CUstream handle) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    return target.owner == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// `failed` is the copy that was refused; `count` where that is none of them.
CUresult copy_batch(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* bytes,
                    std::size_t count, const CUmemcpyAttributes* attributes, const std::size_t* first_of,
                    std::size_t entries, CUstream stream, std::size_t& failed) {
    failed = count;
    EMULATED_CHECK(stream_of_its_own(stream));
    EMULATED_REQUIRE(count > 0 && to != nullptr && from != nullptr && bytes != nullptr &&
                         attributes != nullptr && covers(first_of, entries, count),
                     CUDA_ERROR_INVALID_VALUE);
    for (const CUmemcpyAttributes& each : std::span(attributes, entries)) {
        const int order = static_cast<int>(each.srcAccessOrder);
        EMULATED_REQUIRE(order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
                             order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
                             each.flags <= CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE,
                         CUDA_ERROR_INVALID_VALUE);
    }
    for (std::size_t i = 0; i < count; ++i) {
        failed = i;
        EMULATED_CHECK(copy_rows({{Side::unified, {to[i], 0}}, {Side::unified, {from[i], 0}}, {bytes[i]}},
                                 stream, Wait::no, "cuMemcpyBatchAsync"));
    }
    failed = count;
    return CUDA_SUCCESS;
}

/// What all batches about managed memory check.
CUresult check_ranges(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count,
                      unsigned long long flags, CUstream stream) {
    EMULATED_CHECK(stream_of_its_own(stream));
    EMULATED_REQUIRE(flags == 0 && count > 0 && addresses != nullptr && bytes != nullptr,
                     CUDA_ERROR_INVALID_VALUE);
    for (std::size_t i = 0; i < count; ++i)
        EMULATED_REQUIRE(is_managed(addresses[i], bytes[i]), CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult check_locations(const CUmemLocation* locations, const std::size_t* first_of, std::size_t entries,
                         std::size_t count) {
    EMULATED_REQUIRE(locations != nullptr && covers(first_of, entries, count), CUDA_ERROR_INVALID_VALUE);
    for (const CUmemLocation& each : std::span(locations, entries)) EMULATED_CHECK(check_location(each));
    return CUDA_SUCCESS;
}

/// "Performing a discard ... the contents are undefined": poison, so that it shows.
CUresult discard(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count, CUstream stream) {
    for (std::size_t i = 0; i < count; ++i)
        EMULATED_CHECK(fill_rows({addresses[i], 0, memory::poison, 1, bytes[i], 1, nullptr}, stream, Wait::no,
                                 "cuMemDiscardBatchAsync"));
    return CUDA_SUCCESS;
}

}  // namespace

EMULATED_STREAM_API(cuMemcpyBatchAsync, 13000, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                    std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first_of,
                    std::size_t entries, CUstream stream) {
    std::size_t failed = 0;
    return copy_batch(to, from, bytes, count, attributes, first_of, entries, stream, failed);
}

/// Before CUDA 13: tells which copy was refused.
EMULATED_OLDER_API(cuMemcpyBatchAsync, 12080, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                   std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first_of,
                   std::size_t entries, std::size_t* failed_out, CUstream stream) {
    std::size_t failed = 0;
    const CUresult result = copy_batch(to, from, bytes, count, attributes, first_of, entries, stream, failed);
    // "SIZE_MAX if the error doesn't pertain to any specific copy."
    if (failed_out != nullptr && result != CUDA_SUCCESS) *failed_out = failed < count ? failed : SIZE_MAX;
    return result;
}

/// Hints, for managed memory is in one place here.
EMULATED_STREAM_API(cuMemPrefetchBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, CUmemLocation* locations, std::size_t* first_of, std::size_t entries,
                    unsigned long long flags, CUstream stream) {
    EMULATED_CHECK(check_ranges(addresses, bytes, count, flags, stream));
    return check_locations(locations, first_of, entries, count);
}

EMULATED_STREAM_API(cuMemDiscardBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, unsigned long long flags, CUstream stream) {
    EMULATED_CHECK(check_ranges(addresses, bytes, count, flags, stream));
    return discard(addresses, bytes, count, stream);
}

EMULATED_STREAM_API(cuMemDiscardAndPrefetchBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, CUmemLocation* locations, std::size_t* first_of, std::size_t entries,
                    unsigned long long flags, CUstream stream) {
    EMULATED_CHECK(check_ranges(addresses, bytes, count, flags, stream));
    EMULATED_CHECK(check_locations(locations, first_of, entries, count));
    return discard(addresses, bytes, count, stream);
}

}  // namespace emulated::driver
