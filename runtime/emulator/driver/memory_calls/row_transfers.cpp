// Copies and fills in stream order. Pageable host memory is written before the call returns, and also read unless
// devices can access it (HMM). Device memory is looked up when the call is made, to refuse invalid addresses, and again
// when the operation runs, because memory may be allocated and freed in stream order in between.
#include "driver/memory_calls/row_transfers.hpp"

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "driver/captures.hpp"
#include "driver/graph_nodes.hpp"

namespace emulated::driver {
namespace {

using memory::Allocation;

/// The kind of memory at one side, determined by the call.
enum class Place : std::uint8_t { nowhere, pageable, pinned, managed, device };

struct End {
    Rows rows;
    Place place = Place::nowhere;
};

/// Number of bytes from the first byte of the first row to the last byte of the last row; SIZE_MAX on overflow.
std::size_t span_of(const Rows& rows, const Extent& extent) noexcept {
    std::size_t span = 0, slices = 0;
    const bool too_big = __builtin_mul_overflow(rows.pitch, extent.height - 1, &span) ||
                         __builtin_mul_overflow(rows.slice_pitch, extent.depth - 1, &slices) ||
                         __builtin_add_overflow(span, slices, &span) ||
                         __builtin_add_overflow(span, extent.width, &span);
    return too_big ? std::numeric_limits<std::size_t>::max() : span;
}

/// The kind of memory at `rows`; `nowhere` unless one allocation that the driver knows contains the whole range.
Place place_of_known(const Rows& rows, const Extent& extent) {
    const Allocation* known = Process::get().find_usable(rows.address);
    if (known == nullptr) return Place::nowhere;
    if (known->kind == Allocation::Kind::kernel_heap) return Place::nowhere;  // only kernels may use it
    if (span_of(rows, extent) > known->bytes - (rows.address - known->base)) return Place::nowhere;
    if (known->kind == Allocation::Kind::pinned) return Place::pinned;
    return known->kind == Allocation::Kind::managed ? Place::managed : Place::device;
}

End look_up(const CopyEnd& end, const Extent& extent) {
    const memory::Heap& heap = Process::get().heap();
    const CUdeviceptr address = end.rows.address;
    const bool foreign = heap.find_known(address) == nullptr && !heap.is_device_address(address);
    if (foreign && (end.side != Side::device || Process::get().environment().pageable))
        return {end.rows, address == 0 ? Place::nowhere : Place::pageable};
    return {end.rows, place_of_known(end.rows, extent)};
}

std::string where(const char* name, const char* role, const Rows& rows, const Extent& extent) {
    std::string size = extent.height == 1 ? fmt::format("{} bytes", extent.width)
                                          : fmt::format("{} rows of {} bytes", extent.height, extent.width);
    if (extent.depth > 1) size = fmt::format("{} slices of {}", extent.depth, size);
    return fmt::format("{}: the {} is {} at {:#x}, {}", name, role, size, rows.address,
                       Process::get().heap().describe(rows.address, span_of(rows, extent)));
}

/// Reports which range is not valid memory.
void refuse_range(const char* name, const char* role, const Rows& rows, const Extent& extent) {
    // Looked up before the range is described: if a free ends in between, the description mentions it.
    const Allocation* known = Process::get().heap().find_known(rows.address);
    const bool being_freed = known != nullptr && Process::get().is_being_freed(known->base);
    std::string report = where(name, role, rows, extent);
    if (being_freed && report.find("cuMemFreeAsync") == report.npos)
        report += "; a stream-ordered free (cuMemFreeAsync) of it was issued before";
    if (known != nullptr && known->kind == Allocation::Kind::kernel_heap)
        report += "; only kernels reach the memory of malloc and new: let one copy it into an array";
    const bool is_lost = Process::get().heap().is_lost(rows.address);
    return refuse(is_lost ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_VALUE, std::move(report));
}

/// The bytes of one side when the operation runs. Returns null and fails the context if the memory is freed or not yet
/// allocated.
std::byte* bytes_of(const End& end, const Extent& extent, Context& context, const char* name,
                    const char* role) {
    if (end.place == Place::pageable) return reinterpret_cast<std::byte*>(end.rows.address);
    std::byte* bytes = Process::get().heap().host(end.rows.address, span_of(end.rows, extent));
    if (bytes == nullptr) context.fail(CUDA_ERROR_ILLEGAL_ADDRESS, where(name, role, end.rows, extent));
    return bytes;
}

template <class Use>
void each_row(const Extent& extent, const Use& use) {
    for (std::size_t slice = 0; slice < extent.depth; ++slice) {
        for (std::size_t row = 0; row < extent.height; ++row) use(slice, row);
    }
}

std::size_t offset_in(const Rows& rows, std::size_t slice, std::size_t row) noexcept {
    return slice * rows.slice_pitch + row * rows.pitch;
}

/// The addresses in the two `Rows` are not used.
void move_rows(std::byte* to, const Rows& to_rows, const std::byte* from, const Rows& from_rows,
               const Extent& extent) {
    each_row(extent, [&](std::size_t slice, std::size_t row) {
        std::memmove(to + offset_in(to_rows, slice, row), from + offset_in(from_rows, slice, row),
                     extent.width);
    });
}

/// Logs an access for the search for races. Pageable memory is left out because only the host uses it.
void note(const End& end, const Extent& extent, races::Access access) {
    races::AccessLog* log = races::Running::log();
    if (log == nullptr || end.place == Place::pageable) return;
    each_row(extent, [&](std::size_t slice, std::size_t row) {
        log->add(end.rows.address + offset_in(end.rows, slice, row), extent.width, access);
    });
}

/// Makes the destination as defined as the source; null: the bytes come from elsewhere.
void note_defined(const End& to, const End* from, const Extent& extent) {
    const memory::Shadow& shadow = Process::get().heap().shadow();
    if (shadow.bits() == nullptr || to.place != Place::device) return;
    each_row(extent, [&](std::size_t slice, std::size_t row) {
        const CUdeviceptr target = to.rows.address + offset_in(to.rows, slice, row);
        if (from == nullptr)
            shadow.define(target, extent.width);
        else
            shadow.copy(target, from->rows.address + offset_in(from->rows, slice, row), extent.width);
    });
}

template <class Value>
void fill_row(std::byte* to, std::uint32_t value, std::size_t width) {
    const auto element = static_cast<Value>(value);
    for (std::size_t i = 0; i < width; ++i) std::memcpy(to + i * sizeof element, &element, sizeof element);
}

/// The device that the memory of one side belongs to; UINT64_MAX for pageable memory.
std::uint64_t device_of(const End& end) {
    const Allocation* known = Process::get().heap().find_known(end.rows.address);
    return known == nullptr ? ~std::uint64_t{0} : static_cast<std::uint64_t>(known->device);
}

std::uint64_t number_of(Place place) noexcept { return static_cast<std::uint64_t>(place); }

/// False for pool memory without access for `device`; peer access does not cover pools.
bool is_open(const End& end, int device) {
    const Allocation* known = Process::get().heap().find_known(end.rows.address);
    return known == nullptr || known->access == nullptr || (known->access->load() >> device & 1) != 0;
}

/// Looks up both sides, reports an invalid one, and adds the copy to the trace.
void begin_copy(End& to, End& from, const Copy& copy, const Context& context, CUstream handle,
                const char* name) {
    const Extent& extent = copy.extent;
    to = look_up(copy.to, extent);
    from = look_up(copy.from, extent);
    if (to.place == Place::nowhere) return refuse_range(name, "destination", to.rows, extent);
    if (from.place == Place::nowhere) return refuse_range(name, "source", from.rows, extent);
    for (const End& end : {to, from}) {
        if (!copy.between_peers && !is_open(end, context.device))
            return refuse(CUDA_ERROR_INVALID_VALUE,
                          "{}: device {} has no access to the pool that {:#x} is of (cuMemPoolSetAccess, or "
                          "cuMemcpyPeerAsync, which asks for none)",
                          name, context.device, end.rows.address);
    }
    trace(BASCULE_EMULATED_COPY, handle, nullptr, extent.bytes(), name);
}

/// Rows that were read before the copy runs; empty if they are read when it runs.
struct Staged {
    Rows rows;
    std::vector<std::byte> bytes;
};

std::function<void()> copy_work(Context& context, const End& to, const End& from, const Extent& extent,
                                const char* name, Staged staged = {}) {
    return [&context, to, from, extent, name, staged = std::move(staged), resets = resets_before_call()] {
        if (!context.executes(resets)) return;
        std::byte* target_bytes = bytes_of(to, extent, context, name, "destination");
        if (target_bytes == nullptr) return;
        note(to, extent, races::Access::write);
        note_defined(to, staged.bytes.empty() ? &from : nullptr, extent);
        if (!staged.bytes.empty())
            return move_rows(target_bytes, to.rows, staged.bytes.data(), staged.rows, extent);
        const std::byte* source_bytes = bytes_of(from, extent, context, name, "source");
        if (source_bytes == nullptr) return;
        note(from, extent, races::Access::read);
        move_rows(target_bytes, to.rows, source_bytes, from.rows, extent);
    };
}

CUDA_MEMCPY3D describe(const End& to, const End& from, const Extent& extent) {
    CUDA_MEMCPY3D copy = {};
    const auto is_host = [](const End& end) { return end.place == Place::pageable; };
    copy.srcMemoryType = is_host(from) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcHost = is_host(from) ? reinterpret_cast<const void*>(from.rows.address) : nullptr;
    copy.srcDevice = is_host(from) ? 0 : from.rows.address;
    copy.srcPitch = from.rows.pitch;
    copy.dstMemoryType = is_host(to) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstHost = is_host(to) ? reinterpret_cast<void*>(to.rows.address) : nullptr;
    copy.dstDevice = is_host(to) ? 0 : to.rows.address;
    copy.dstPitch = to.rows.pitch;
    copy.WidthInBytes = extent.width;
    copy.Height = extent.height;
    copy.Depth = extent.depth;
    return copy;
}

/// A fill. begin_fill checks `asked` and sets the other members.
struct Fill {
    CUDA_MEMSET_NODE_PARAMS_v2 asked;
    End to{};
    Extent extent{};
};

/// Checks a fill and adds it to the trace.
void begin_fill(Fill& fill, CUstream handle, const char* name) {
    const CUDA_MEMSET_NODE_PARAMS_v2& asked = fill.asked;
    const std::size_t bytes = asked.elementSize;
    const bool aligned = asked.dst % bytes == 0 && (asked.height == 1 || asked.pitch % bytes == 0);
    require(aligned);
    fill.extent = {0, asked.height, 1};
    require(!__builtin_mul_overflow(asked.width, bytes, &fill.extent.width));
    fill.to = look_up({Side::device, {asked.dst, asked.pitch}}, fill.extent);
    if (fill.to.place == Place::nowhere) return refuse_range(name, "destination", fill.to.rows, fill.extent);
    trace(BASCULE_EMULATED_FILL, handle, nullptr, fill.extent.bytes(), name);
}

std::function<void()> fill_work(Context& context, const Fill& fill, const char* name) {
    return [&context, fill, name, resets = resets_before_call()] {
        if (!context.executes(resets)) return;
        std::byte* bytes = bytes_of(fill.to, fill.extent, context, name, "destination");
        if (bytes == nullptr) return;
        note(fill.to, fill.extent, races::Access::write);
        note_defined(fill.to, nullptr, fill.extent);
        const auto& [address, pitch, value, element_bytes, width, height, unused] = fill.asked;
        for (std::size_t row = 0; row < height; ++row) {
            std::byte* at = bytes + row * pitch;
            if (element_bytes == 1) std::memset(at, static_cast<int>(value & 0xFF), width);
            if (element_bytes == 2) fill_row<std::uint16_t>(at, value, width);
            if (element_bytes == 4) fill_row<std::uint32_t>(at, value, width);
        }
    };
}

}  // namespace

void note_write(CUdeviceptr address, std::size_t bytes) {
    if (races::AccessLog* log = races::Running::log()) log->add(address, bytes, races::Access::write);
}

/// A graph reads pageable memory when it is launched, so nothing is staged.
void make_copy_node(streams::WorkNode& node, const Copy& copy, Context& context, CUstream handle,
                    const char* name) {
    require(!copy.extent.empty());
    End to, from;
    begin_copy(to, from, copy, context, handle, name);
    node.operands = {number_of(to.place), device_of(to), number_of(from.place), device_of(from)};
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_MEMCPY);
    parameters.values.memcpy = {
        0, 0, reinterpret_cast<CUcontext>(&context),
        copy.described != nullptr ? *copy.described : describe(to, from, copy.extent)};
    make_node(node, context, std::move(parameters), copy_work(context, to, from, copy.extent, name));
}

void copy_rows(const Copy& copy, CUstream handle, Wait wait, const char* name) {
    const auto target = find_stream(handle);
    const CaptureGate gate(target);
    const Extent& extent = copy.extent;
    if (extent.empty()) return;
    Context& context = *target.context;
    if (gate.captures()) {
        return gate.add([&](streams::WorkNode& node) { make_copy_node(node, copy, context, handle, name); });
    }
    // The calling thread's device counts, whatever the stream; cuda.core's tests, which pass on GPUs, rely on that.
    const Context* current = current_context();
    End to, from;
    begin_copy(to, from, copy, current == nullptr ? context : *current, handle, name);
    const bool device_to_device = to.place == Place::device && from.place == Place::device;
    const auto is_host = [](const End& end) {
        return end.place == Place::pageable || end.place == Place::pinned;
    };
    const bool host_to_host = is_host(to) && is_host(from);
    const bool waits =
        to.place == Place::pageable || host_to_host || (wait == Wait::yes && !device_to_device);
    // If the device can access pageable memory, callers may not rely on its being read before the call returns.
    const bool stages = !Process::get().environment().pageable;
    Staged staged{{0, extent.width, extent.width * extent.height}, {}};
    if (from.place == Place::pageable && stages && !waits) {
        staged.bytes.resize(extent.bytes());
        move_rows(staged.bytes.data(), staged.rows, reinterpret_cast<const std::byte*>(from.rows.address),
                  from.rows, extent);
    }
    context.graph.submit(*target.stream, copy_work(context, to, from, extent, name, std::move(staged)));
    if (!waits) return;
    context.graph.synchronize(*target.stream);
    check(context.take_error());
}

void make_fill_node(streams::WorkNode& node, const CUDA_MEMSET_NODE_PARAMS_v2& given, Context& context,
                    CUstream handle, const char* name) {
    const bool element = given.elementSize == 1 || given.elementSize == 2 || given.elementSize == 4;
    require(element && given.width > 0 && given.height > 0);
    Fill fill{given};
    begin_fill(fill, handle, name);
    node.operands = {number_of(fill.to.place), device_of(fill.to), given.height};
    // "For 2d memsets, only address and assigned value may be updated."
    if (given.height > 1)
        node.operands = {node.operands[0], node.operands[1],  given.height,
                         given.pitch,      fill.extent.width, given.elementSize};
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_MEMSET);
    parameters.values.memset = given;
    parameters.values.memset.ctx = reinterpret_cast<CUcontext>(&context);
    make_node(node, context, std::move(parameters), fill_work(context, fill, name));
}

void fill_rows(const CUDA_MEMSET_NODE_PARAMS_v2& asked, CUstream handle, Wait wait, const char* name) {
    const auto target = find_stream(handle);
    const CaptureGate gate(target);
    if (asked.width == 0 || asked.height == 0) return;
    Context& context = *target.context;
    if (gate.captures()) return gate.add(make_fill_node, asked, context, handle, name);
    Fill fill{asked};
    begin_fill(fill, handle, name);
    context.graph.submit(*target.stream, fill_work(context, fill, name));
    // "Asynchronous with respect to the host except when the target is pinned host memory or unified memory".
    if (wait == Wait::no || fill.to.place == Place::device) return;
    context.graph.synchronize(*target.stream);
    check(context.take_error());
}

}  // namespace emulated::driver
