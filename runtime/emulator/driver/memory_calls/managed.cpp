// Hints for managed memory, and batches. Managed memory never moves here: hints are checked for managed memory and a valid
// location, stored, and returned by queries. A batch is several copies, prefetches or discards in one call. "The batch as a
// whole executes in stream order": here its operations run one after another, an order that callers must allow.
#include <algorithm>
#include <span>

#include "driver/graph_nodes.hpp"
#include "driver/memory_calls/row_transfers.hpp"
#include "memory/managed_hints.hpp"

namespace emulated::driver {
using memory::ManagedHints;

namespace {

/// The managed allocation that contains the whole range, also if a stream still has to allocate it; null otherwise.
const memory::Allocation* managed_at(CUdeviceptr address, std::size_t bytes) {
    const memory::Allocation* allocation = Process::get().heap().find_known(address);
    const bool managed = allocation != nullptr && allocation->kind == memory::Allocation::Kind::managed;
    const bool all = managed && bytes > 0 && bytes <= allocation->bytes - (address - allocation->base);
    return all ? allocation : nullptr;
}
bool is_managed(CUdeviceptr address, std::size_t bytes) { return managed_at(address, bytes) != nullptr; }

/// Checks that managed memory can be at this location.
void check_location(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return require(Process::get().is_device(location.id), CUDA_ERROR_INVALID_DEVICE);
    const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    require(host);
}

/// Converts a location for queries. "The host NUMA node closest to the calling thread's CPU" is node 0, the only one
/// here.
ManagedHints::Location to_hint(const CUmemLocation& location) noexcept {
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) return {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    return {location.type, location.type == CU_MEM_LOCATION_TYPE_HOST ? 0 : location.id};
}

template <class Change>
void change_hints(CUdeviceptr address, std::size_t bytes, const Change& change) {
    if (const memory::Allocation* allocation = managed_at(address, bytes))
        allocation->hints->change(address - allocation->base, bytes, change);
}

/// "The last location that the application requested to prefetch the memory range to."
void note_prefetch(CUdeviceptr address, std::size_t bytes, const CUmemLocation& location) {
    change_hints(address, bytes, [&](ManagedHints::Hints& hints) { hints.prefetched = to_hint(location); });
}

/// The bit of a processor in ManagedHints::Hints::accessed_by.
std::uint64_t processor_bit(int device) noexcept {
    return std::uint64_t{1} << (device == CU_DEVICE_CPU ? most_devices : device);
}

bool ignores_location(CUmem_advise advice) noexcept {
    return advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
           advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

bool is_accessed_by(CUmem_advise advice) noexcept {
    return advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

void take_advice(ManagedHints::Hints& hints, CUmem_advise advice, const CUmemLocation& location) noexcept {
    if (is_accessed_by(advice)) {
        const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        const std::uint64_t bit = processor_bit(device ? location.id : CU_DEVICE_CPU);
        advice == CU_MEM_ADVISE_SET_ACCESSED_BY ? hints.accessed_by |= bit : hints.accessed_by &= ~bit;
    } else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) {
        hints.preferred = to_hint(location);
    } else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
        hints.preferred = {};
    } else {
        hints.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
    }
}

using Pieces = std::span<const ManagedHints::Hints>;

/// The location that all pieces of a range share, or no location.
ManagedHints::Location common(Pieces pieces, ManagedHints::Location ManagedHints::Hints::*which) {
    const ManagedHints::Location first = pieces.front().*which;
    return std::ranges::all_of(pieces, [&](const auto& each) { return each.*which == first; })
               ? first
               : ManagedHints::Location{};
}

int device_number(const ManagedHints::Location& location) noexcept {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
    return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

/// An attribute of a range that is a location, and the number that a query returns for the location.
struct LocationAttribute {
    CUmem_range_attribute which;
    ManagedHints::Location ManagedHints::Hints::*location;
    int (*number)(const ManagedHints::Location&);
};
constexpr auto type_of = [](const ManagedHints::Location& location) noexcept { return location.type; };
constexpr auto id_of = [](const ManagedHints::Location& location) noexcept { return location.id; };
constexpr LocationAttribute location_attributes[] = {
    {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, &ManagedHints::Hints::preferred, device_number},
    {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, &ManagedHints::Hints::preferred, type_of},
    {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, &ManagedHints::Hints::preferred, id_of},
    {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, &ManagedHints::Hints::prefetched, device_number},
    {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, &ManagedHints::Hints::prefetched, type_of},
    {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, &ManagedHints::Hints::prefetched, id_of},
};

/// "A list of device ids that had CU_MEM_ADVISE_SET_ACCESSED_BY set for that entire memory range ... CU_DEVICE_INVALID will be
/// returned in all the extra space".
void list_accessing(Pieces pieces, std::span<int> out) {
    std::uint64_t all = ~std::uint64_t{0};
    for (const ManagedHints::Hints& each : pieces) all &= each.accessed_by;
    auto next = out.begin();
    for (int device = CU_DEVICE_CPU; device < most_devices && next != out.end(); ++device) {
        if ((all & processor_bit(device)) != 0) *next++ = device;
    }
    std::fill(next, out.end(), CU_DEVICE_INVALID);
}

void get_attribute(void* data, std::size_t bytes, CUmem_range_attribute which, Pieces pieces) {
    require(data != nullptr && bytes > 0 && bytes % sizeof(int) == 0);
    const std::span out(static_cast<int*>(data), bytes / sizeof(int));
    if (which == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessing(pieces, out);
        return;
    }
    require(out.size() == 1);
    if (which == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
        return answer(out.data(), std::ranges::all_of(pieces, &ManagedHints::Hints::read_mostly) ? 1 : 0);
    const auto* row = find_row(location_attributes, &LocationAttribute::which, which);
    require(row != nullptr);
    return answer(out.data(), row->number(common(pieces, row->location)));
}

/// True if the indices assign each of `count` operations to an entry. An entry applies from its index to the next entry's.
/// "The first entry must always be 0 ... each entry must be greater than the previous entry and the last entry should be
/// less than count."
bool covers(const std::size_t* first_of, std::size_t entries, std::size_t count) noexcept {
    if (entries == 0 || first_of == nullptr || first_of[0] != 0 || first_of[entries - 1] >= count)
        return false;
    for (std::size_t i = 1; i < entries; ++i) {
        if (first_of[i] <= first_of[i - 1]) return false;
    }
    return true;
}

/// "Must not be legacy NULL stream."
void stream_of_its_own(CUstream handle) { require(find_stream(handle).owner != nullptr); }

/// Sets `failed` to the index of the refused copy, or to `count` if the error is not about one copy.
void copy_batch(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* bytes, std::size_t count,
                const CUmemcpyAttributes* attributes, const std::size_t* first_of, std::size_t entries,
                CUstream stream, std::size_t& failed) {
    failed = count;
    stream_of_its_own(stream);
    require(count > 0 && to != nullptr && from != nullptr && bytes != nullptr && attributes != nullptr &&
            covers(first_of, entries, count));
    for (const CUmemcpyAttributes& each : std::span(attributes, entries)) {
        const int order = static_cast<int>(each.srcAccessOrder);
        require(order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
                each.flags <= CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
    }
    for (std::size_t i = 0; i < count; ++i) {
        failed = i;
        copy_rows({{Side::unified, {to[i], 0}}, {Side::unified, {from[i], 0}}, {bytes[i]}}, stream, Wait::no,
                  "cuMemcpyBatchAsync");
    }
    failed = count;
}

/// The checks that all batches about managed memory share.
void check_ranges(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count,
                  unsigned long long flags, CUstream stream) {
    stream_of_its_own(stream);
    require(flags == 0 && count > 0 && addresses != nullptr && bytes != nullptr);
    for (std::size_t i = 0; i < count; ++i) require(is_managed(addresses[i], bytes[i]));
}

void check_locations(const CUmemLocation* locations, const std::size_t* first_of, std::size_t entries,
                     std::size_t count) {
    require(locations != nullptr && covers(first_of, entries, count));
    for (const CUmemLocation& each : std::span(locations, entries)) check_location(each);
}

/// Records the prefetches of a batch that was checked.
void note_prefetches(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count,
                     const CUmemLocation* locations, const std::size_t* first_of, std::size_t entries) {
    for (std::size_t i = 0, entry = 0; i < count; ++i) {
        if (entry + 1 < entries && first_of[entry + 1] == i) ++entry;
        note_prefetch(addresses[i], bytes[i], locations[entry]);
    }
}

/// "Performing a discard ... the contents are undefined". Fills the ranges with poison, so that a read is noticed.
void discard(const CUdeviceptr* addresses, const std::size_t* bytes, std::size_t count, CUstream stream) {
    for (std::size_t i = 0; i < count; ++i)
        fill_rows({addresses[i], 0, memory::poison, 1, bytes[i], 1, nullptr}, stream, Wait::no,
                  "cuMemDiscardBatchAsync");
}

}  // namespace

EMULATED_STREAM_API(cuMemPrefetchAsync, 12020, CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                    unsigned int flags, CUstream handle) {
    const auto target = find_stream(handle);
    require(flags == 0 && is_managed(address, bytes));
    check_location(location);
    note_prefetch(address, bytes, location);
}

EMULATED_CONTEXT_API(cuMemAdvise, 12020, CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                     CUmemLocation location) {
    const bool known = advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    require(known && is_managed(address, bytes));
    if (!ignores_location(advice)) check_location(location);
    // "Either CU_MEM_LOCATION_TYPE_DEVICE ... or CU_MEM_LOCATION_TYPE_HOST ... All other location types are invalid."
    require(!is_accessed_by(advice) || location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
            location.type == CU_MEM_LOCATION_TYPE_HOST);
    change_hints(address, bytes, [&](ManagedHints::Hints& hints) { take_advice(hints, advice, location); });
}

EMULATED_CONTEXT_API(cuMemRangeGetAttributes, 8000, void** data, std::size_t* bytes,
                     CUmem_range_attribute* attributes, std::size_t count, CUdeviceptr address,
                     std::size_t range) {
    const memory::Allocation* allocation = managed_at(address, range);
    require(allocation != nullptr && count > 0 && data != nullptr && bytes != nullptr &&
            attributes != nullptr);
    const auto pieces = allocation->hints->of(address - allocation->base, range);
    for (std::size_t i = 0; i < count; ++i) get_attribute(data[i], bytes[i], attributes[i], pieces);
}

EMULATED_CONTEXT_API(cuMemRangeGetAttribute, 8000, void* data, std::size_t bytes, CUmem_range_attribute which,
                     CUdeviceptr address, std::size_t range) {
    check(cuMemRangeGetAttributes(&data, &bytes, &which, 1, address, range));
}

/// Only a whole allocation can be attached, and CU_MEM_ATTACH_SINGLE needs a stream that the client created.
EMULATED_STREAM_API(cuStreamAttachMemAsync, 6000, CUstream handle, CUdeviceptr address, std::size_t bytes,
                    unsigned int flags) {
    const auto target = find_stream(handle);
    const bool one_flag =
        flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    const bool for_null = flags == CU_MEM_ATTACH_SINGLE && target.owner == nullptr;
    const memory::Allocation* allocation = managed_at(address, 1);
    require(one_flag && !for_null && allocation != nullptr);
    require(address == allocation->base && (bytes == 0 || bytes == allocation->bytes));
}

EMULATED_STREAM_API(cuMemcpyBatchAsync, 13000, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                    std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first_of,
                    std::size_t entries, CUstream stream) {
    std::size_t failed = 0;
    return copy_batch(to, from, bytes, count, attributes, first_of, entries, stream, failed);
}

/// The version before CUDA 13, which reports the copy that was refused.
EMULATED_OLDER_API(cuMemcpyBatchAsync, 12080, CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                   std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first_of,
                   std::size_t entries, std::size_t* failed_out, CUstream stream) {
    std::size_t failed = 0;
    try {
        copy_batch(to, from, bytes, count, attributes, first_of, entries, stream, failed);
    } catch (const Failed&) {
        // "SIZE_MAX if the error doesn't pertain to any specific copy."
        if (failed_out != nullptr) *failed_out = failed < count ? failed : SIZE_MAX;
        throw;
    }
}

EMULATED_STREAM_API(cuMemPrefetchBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, CUmemLocation* locations, std::size_t* first_of, std::size_t entries,
                    unsigned long long flags, CUstream stream) {
    check_ranges(addresses, bytes, count, flags, stream);
    check_locations(locations, first_of, entries, count);
    note_prefetches(addresses, bytes, count, locations, first_of, entries);
}

EMULATED_STREAM_API(cuMemDiscardBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, unsigned long long flags, CUstream stream) {
    check_ranges(addresses, bytes, count, flags, stream);
    return discard(addresses, bytes, count, stream);
}

EMULATED_STREAM_API(cuMemDiscardAndPrefetchBatchAsync, 13000, CUdeviceptr* addresses, std::size_t* bytes,
                    std::size_t count, CUmemLocation* locations, std::size_t* first_of, std::size_t entries,
                    unsigned long long flags, CUstream stream) {
    check_ranges(addresses, bytes, count, flags, stream);
    check_locations(locations, first_of, entries, count);
    note_prefetches(addresses, bytes, count, locations, first_of, entries);
    return discard(addresses, bytes, count, stream);
}

}  // namespace emulated::driver
