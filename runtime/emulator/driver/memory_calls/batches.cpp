// Batches: several copies, prefetches or discards in one call. "The batch as a whole executes in stream order": here one
// after another, which is one of the orders that callers must expect.
#include <span>

#include "driver/graph_nodes.hpp"
#include "driver/memory_calls/managed.hpp"
#include "driver/memory_calls/transfers.hpp"
#include "driver/older_versions.hpp"

namespace emulated::driver {
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
        EMULATED_CHECK(copy_rows({Side::unified, {to[i], 0}}, {Side::unified, {from[i], 0}}, {bytes[i]},
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

}  // namespace

EMULATED_STREAM_API(cuMemcpyBatchAsync, 13000, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                    std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first_of,
                    std::size_t entries, CUstream stream) {
    std::size_t failed = 0;
    return copy_batch(to, from, bytes, count, attributes, first_of, entries, stream, failed);
}

EMULATED_OLDER_API(copy_batch_v1, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                   CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t entries,
                   std::size_t* failed_out, CUstream stream) {
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

namespace {

/// "Performing a discard ... the contents are undefined": poison, so that it shows.
CUresult discard(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count, CUstream stream) {
    for (std::size_t i = 0; i < count; ++i)
        EMULATED_CHECK(fill_rows({addresses[i], 0}, memory::poison, 1, bytes[i], 1, stream, Wait::no,
                                 "cuMemDiscardBatchAsync"));
    return CUDA_SUCCESS;
}

}  // namespace

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
