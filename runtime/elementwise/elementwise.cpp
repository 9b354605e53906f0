// All operations use one loop with contiguous axes merged. If the elements are contiguous, the driver copies or fills;
// otherwise one of Bascule's kernels does.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/pointer_attributes.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>
#include <bascule/runtime/elementwise/elementwise_kernels.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/ordering.hpp>
#include <bascule/runtime/trace/ordered_call.hpp>

namespace bascule {
namespace {

const Module& kernels() {
    static const auto* module = new Module(Source{elementwise_text, "<bascule elementwise>", 1, {}});
    return *module;  // never destroyed, because its code may still run at exit
}

/// Returns the code of elementwise_kernels.hpp for a type; -1 if it is not a number or bool.
int code_of(DType dtype) noexcept {
    static constexpr int first_of_kind[] = {0, 1, 5, 8, 9};
    if (dtype.kind > DType::Kind::complex) return -1;
    return first_of_kind[static_cast<std::size_t>(dtype.kind)] + std::countr_zero(dtype.itemsize);
}

/// The streams that the arrays name.
ProducerPair producers_of(std::initializer_list<const ArrayView*> arrays) noexcept {
    ProducerPair producers;
    for (const ArrayView* array : arrays) {
        const int place = static_cast<int>(producers.get().size());
        if (array->stream) producers.add({array->stream, place});
    }
    return producers;
}

struct Axis {
    std::int64_t extent, to_stride, from_stride;
};

/// Returns a loop over all elements in the order of the destination's memory, with as few axes as possible.
ElementwiseJob loop_over(const ArrayView& destination, const ArrayView* source) {
    std::vector<Axis> axes;
    for (int d = 0; d < destination.ndim(); ++d) {
        if (destination.shape[d] == 1) continue;
        axes.push_back({destination.shape[d], destination.strides[d], source ? source->strides[d] : 0});
    }
    std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
        return std::abs(a.to_stride) > std::abs(b.to_stride);
    });
    std::vector<Axis> merged;
    for (const Axis& axis : axes) {
        if (!merged.empty() && merged.back().to_stride == axis.extent * axis.to_stride &&
            merged.back().from_stride == axis.extent * axis.from_stride) {
            merged.back() = {merged.back().extent * axis.extent, axis.to_stride, axis.from_stride};
        } else {
            merged.push_back(axis);
        }
    }
    ElementwiseJob job;
    job.destination = destination.pointer;
    job.source = source ? source->pointer : 0;
    job.count = static_cast<std::int64_t>(destination.size);
    job.ndim = static_cast<std::int32_t>(merged.size());
    for (std::size_t d = 0; d < merged.size(); ++d) {
        job.extents[d] = merged[d].extent;
        job.to_strides[d] = merged[d].to_stride;
        job.from_strides[d] = merged[d].from_stride;
    }
    return job;
}

bool is_one_run(const ElementwiseJob& job, const std::int64_t* strides, std::int64_t itemsize) noexcept {
    return job.ndim == 0 || (job.ndim == 1 && strides[0] == itemsize);
}

/// Returns the largest power of two up to 8 that divides the address, the item size and all strides.
std::uint64_t common_unit(std::uint64_t address, std::uint64_t itemsize, const std::int64_t* strides,
                          int ndim) {
    std::uint64_t bits = address | itemsize | 8;
    for (int d = 0; d < ndim; ++d) bits |= static_cast<std::uint64_t>(strides[d]);
    return bits & (~bits + 1);
}

void launch(StreamRef stream, const std::string& name, const ElementwiseJob& job,
            std::span<const Producer> producers) {
    const Device device = stream.device();
    const Kernel kernel = kernels().kernel(name);
    ArgumentPack pack(kernel.loaded(device).image->signature);
    pack.set(0, RawBytes{std::as_bytes(std::span(&job, 1))});
    for (const Producer& producer : producers) pack.add_producer(producer.stream, producer.argument);
    constexpr std::int64_t threads = 256;
    // Additional blocks would not keep the device any busier.
    const std::int64_t most = std::int64_t{64} * device.multiprocessors();
    const std::int64_t blocks = std::min((job.count + threads - 1) / threads, most);
    LaunchConfig config;
    config.grid.x = static_cast<std::uint32_t>(blocks);
    config.block.x = threads;
    const LaunchHooksSuspended suspended;  // hooks are only for the program's own kernels
    kernel.launch(stream, config, pack, Owners::handed_over_later());  // the caller has them
}

/// Returns 1, 2 or 4 if the value repeats after that many bytes, so that the driver can fill memory with it.
std::optional<std::size_t> repeats_every(std::span<const std::byte> element) noexcept {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        if (element.size() % bytes != 0) continue;
        bool equal = true;
        for (std::size_t i = bytes; i < element.size(); ++i)
            equal = equal && element[i] == element[i - bytes];
        if (equal) return bytes;
    }
    return std::nullopt;
}

void fill_run(StreamRef stream, const ArrayView& destination, const std::byte* element, std::size_t unit,
              std::span<const Producer> producers) {
    const std::size_t count = destination.size * destination.dtype.itemsize / unit;
    const auto fill = [&](const DriverFunctions& api) -> DriverResult {
        const std::uint64_t to = destination.pointer;
        std::uint32_t pattern = 0;
        std::memcpy(&pattern, element, unit);
        if (unit == 4) return api.cuMemsetD32Async(to, pattern, count, stream.native());
        if (unit == 2)
            return api.cuMemsetD16Async(to, static_cast<unsigned short>(pattern), count, stream.native());
        return api.cuMemsetD8Async(to, static_cast<unsigned char>(pattern), count, stream.native());
    };
    const ContextGuard context(stream.context());
    enqueue_in_order(CallKind::fill, count * unit, stream, producers, "filling an array", fill);
}

void copy_run(StreamRef stream, std::uint64_t destination, std::uint64_t source, std::size_t bytes,
              std::span<const Producer> producers) {
    const ContextGuard context(stream.context());
    enqueue_in_order(CallKind::copy, bytes, stream, producers, "copying an array",
                     [&](const DriverFunctions& api) {
                         return api.cuMemcpyDtoDAsync(destination, source, bytes, stream.native());
                     });
}

/// Copies contiguous arrays between two devices. Plain copies would need access to the other device's pool, which by
/// default only its own device has.
void copy_between_peers(StreamRef stream, std::uint64_t destination, std::uint64_t source, Device from,
                        std::size_t bytes, std::span<const Producer> producers) {
    const ContextGuard context(stream.context());
    enqueue_in_order(CallKind::copy, bytes, stream, producers, "copying an array",
                     [&](const DriverFunctions& api) {
                         return api.cuMemcpyPeerAsync(destination, stream.context(), source, from.context(),
                                                      bytes, stream.native());
                     });
}

/// True for memory of one device. Host, pinned and managed memory can be copied from every device.
bool is_device_memory(std::uint64_t address, Device device) {
    const auto known = pointer_attributes(address, device);
    return known && (known->kind == PointerKind::device || known->kind == PointerKind::pool);
}

/// Calls `write` with a copy of the destination that kernels can write. The copy has the destination's alignment. It
/// then overwrites the destination, including the gaps between elements.
template <class Write>
void write_by_copies(StreamRef stream, const ArrayView& destination, const Write& write) {
    const auto [first, end] = bytes_of(destination);
    const std::size_t bytes = end - first;
    const std::uint64_t shift = first % 16;
    auto copy = std::make_unique<DeviceBuffer>(bytes + shift, stream);
    const std::uint64_t start = copy->address() + shift;
    const Owner owner{copy.release(), &delete_owners<DeviceBuffer>, bytes};
    const Owners owners(owner);
    const OwnersKept kept(stream, owners);
    const ProducerPair producers = producers_of({&destination});
    if (!destination.contiguous()) copy_run(stream, start, first, bytes, producers.get());
    ArrayView staged = destination;
    staged.in_constant_memory = false;
    staged.pointer = start + (destination.pointer - first);
    write(staged);
    copy_run(stream, first, start, bytes, producers.get());
}

}  // namespace

bool can_convert(DType from, DType to) noexcept {
    if (code_of(from) < 0 || code_of(to) < 0) return false;
    return from.kind != DType::Kind::complex || to.kind == DType::Kind::complex ||
           to.kind == DType::Kind::boolean;
}

void copy_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                   const Owners& owners) {
    const OwnersKept kept(stream, owners);
    if (destination.empty()) return;
    const ProducerPair producers = producers_of({&source, &destination});
    ElementwiseJob job = loop_over(destination, &source);
    const std::int64_t itemsize = destination.dtype.itemsize;
    if (is_one_run(job, job.to_strides, itemsize) && is_one_run(job, job.from_strides, itemsize)) {
        const std::size_t bytes = destination.size * destination.dtype.itemsize;
        const Device device = stream.device();
        if (source.stream.device >= 0 && source.stream.device != device.ordinal() &&
            is_device_memory(source.pointer, device) && is_device_memory(destination.pointer, device)) {
            copy_between_peers(stream, destination.pointer, source.pointer, Device(source.stream.device),
                               bytes, producers.get());
        } else {
            copy_run(stream, destination.pointer, source.pointer, bytes, producers.get());
        }
        return;
    }
    if (destination.in_constant_memory) {
        write_by_copies(stream, destination,
                        [&](const ArrayView& staged) { copy_elements(stream, staged, source); });
        return;
    }
    const std::uint64_t unit =
        std::min(common_unit(job.destination, destination.dtype.itemsize, job.to_strides, job.ndim),
                 common_unit(job.source, destination.dtype.itemsize, job.from_strides, job.ndim));
    job.units = static_cast<std::int32_t>(destination.dtype.itemsize / unit);
    launch(stream, "move" + std::to_string(unit), job, producers.get());
}

void convert_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                      const Owners& owners) {
    const OwnersKept kept(stream, owners);
    if (destination.empty()) return;
    if (destination.in_constant_memory) {
        write_by_copies(stream, destination,
                        [&](const ArrayView& staged) { convert_elements(stream, staged, source); });
        return;
    }
    const ProducerPair producers = producers_of({&source, &destination});
    ElementwiseJob job = loop_over(destination, &source);
    job.from = code_of(source.dtype);
    job.to = code_of(destination.dtype);
    job.units = static_cast<std::int32_t>(source.dtype.itemsize);
    const bool complex = source.dtype.kind == DType::Kind::complex;
    const std::uint64_t component = source.dtype.itemsize / (complex ? 2U : 1U);
    const bool aligned =
        common_unit(job.source, source.dtype.itemsize, job.from_strides, job.ndim) >= component;
    launch(stream, aligned ? "convert" : "convert_bytes", job, producers.get());
}

void fill_elements(StreamRef stream, const ArrayView& destination, std::span<const std::byte> element,
                   const Owners& owners) {
    const OwnersKept kept(stream, owners);
    if (destination.empty()) return;
    const ProducerPair producers = producers_of({&destination});
    ElementwiseJob job = loop_over(destination, nullptr);
    const std::uint64_t aligned =
        common_unit(job.destination, destination.dtype.itemsize, job.to_strides, job.ndim);
    const std::optional<std::size_t> unit = repeats_every(element);
    if (unit && destination.pointer % *unit == 0 &&
        is_one_run(job, job.to_strides, destination.dtype.itemsize)) {
        fill_run(stream, destination, element.data(), *unit, producers.get());
        return;
    }
    if (destination.in_constant_memory) {
        write_by_copies(stream, destination,
                        [&](const ArrayView& staged) { fill_elements(stream, staged, element); });
        return;
    }
    std::memcpy(job.element, element.data(), element.size());
    job.units = static_cast<std::int32_t>(destination.dtype.itemsize / aligned);
    launch(stream, "fill" + std::to_string(aligned), job, producers.get());
}

}  // namespace bascule
