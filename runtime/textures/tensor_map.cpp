#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/textures/tensor_map.hpp>

namespace bascule {
namespace {

static_assert(sizeof(CUtensorMap) == tensor_map_bytes && alignof(CUtensorMap) >= tensor_map_alignment);

CUtensorMapSwizzle driver_swizzle(int bytes) noexcept {
    return bytes == 0    ? CU_TENSOR_MAP_SWIZZLE_NONE
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                         : CU_TENSOR_MAP_SWIZZLE_128B;
}

CUtensorMapInterleave driver_interleave(int bytes) noexcept {
    return bytes == 0    ? CU_TENSOR_MAP_INTERLEAVE_NONE
           : bytes == 16 ? CU_TENSOR_MAP_INTERLEAVE_16B
                         : CU_TENSOR_MAP_INTERLEAVE_32B;
}

CUtensorMapL2promotion driver_promotion(int bytes) noexcept {
    return bytes == 0     ? CU_TENSOR_MAP_L2_PROMOTION_NONE
           : bytes == 64  ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
           : bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                          : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
}

[[noreturn]] void refuse_driver(const Driver& driver) {
    throw LibraryError(
        fmt::format(
            "the CUDA driver in {} has no tensor maps (cuTensorMapEncodeTiled). Update the NVIDIA driver to one for "
            "CUDA 12.0 or newer.",
            driver.path()),
        {.library = "CUDA driver", .paths_tried = {driver.path()}});
}

DriverResult encode(const TensorMapDescription& d, CUtensorMap& map) {
    const Driver& driver = Driver::get();
    const DriverFunctions& api = driver.api();
    if (!api.cuTensorMapEncodeTiled || !api.cuTensorMapEncodeIm2col) refuse_driver(driver);
    const auto type = static_cast<CUtensorMapDataType>(d.type);
    const auto rank = static_cast<cuuint32_t>(d.rank);
    auto* const address =
        reinterpret_cast<void*>(static_cast<std::uintptr_t>(d.address));  // NOLINT(performance-no-int-to-ptr)
    std::array<cuuint64_t, TensorMapDescription::max_rank> extents{};
    std::array<cuuint64_t, TensorMapDescription::max_rank - 1> strides{};
    std::ranges::copy(d.extents, extents.begin());
    std::ranges::copy(d.strides, strides.begin());
    const CUtensorMapFloatOOBfill fill = d.fill == TensorMapFill::nan
                                             ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                             : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    if (d.is_im2col) {
        return api.cuTensorMapEncodeIm2col(&map, type, rank, address, extents.data(), strides.data(),
                                           d.lower.data(), d.upper.data(), d.channels, d.pixels,
                                           d.element_strides.data(), driver_interleave(d.interleave),
                                           driver_swizzle(d.swizzle), driver_promotion(d.l2_promotion), fill);
    }
    return api.cuTensorMapEncodeTiled(&map, type, rank, address, extents.data(), strides.data(), d.box.data(),
                                      d.element_strides.data(), driver_interleave(d.interleave),
                                      driver_swizzle(d.swizzle), driver_promotion(d.l2_promotion), fill);
}

/// The bytes of one box, which has ceil(box / element_strides) elements on each axis. Without interleaved slices the driver
/// ignores the step of the last axis; `describe_tensor_map` refuses other steps than 1 there.
std::uint64_t bytes_of_box(const TensorMapOptions& options, DType dtype) noexcept {
    std::uint64_t bytes = dtype.itemsize;
    for (int axis = 0; axis < options.box.size(); ++axis) {
        const std::int64_t step =
            options.element_strides.size() == 0 || options.im2col ? 1 : options.element_strides[axis];
        bytes *= static_cast<std::uint64_t>((options.box[axis] + step - 1) / step);
    }
    return bytes;
}

void require_capability(Device device) {
    const Arch arch = device.capability();
    if (arch.major >= 9) return;
    reject_field(ErrorKind::not_supported, "array",
                 "the array lies on device {} ({}), and tensor maps need compute capability 9.0 or higher{}.",
                 device.ordinal(), device.name(), device.emulated() ? ": set BASCULE_EMULATED_ARCH=90" : "");
}

}  // namespace

TensorMap::TensorMap(const ArrayView& array, const TensorMapOptions& options, Device device)
    : device_(device),
      description_(describe_tensor_map(array, options)),
      bytes_(bytes_of_box(options, array.dtype)),
      argument_{encoded_.data(), 0, array} {
    require_capability(device);
    if (const auto broken = broken_rule(description_))
        reject_field(ErrorKind::value, broken->field, "{}", broken->sentence);
    CUtensorMap map{};
    const ContextGuard context(device.context());
    Driver::get().check(encode(description_, map), "making a tensor map");
    std::memcpy(encoded_.data(), &map, sizeof map);
}

TensorMap::~TensorMap() = default;

std::uint64_t TensorMap::address() const {
    const std::lock_guard lock(mutex_);
    if (!copy_) {
        DeviceBuffer copy(tensor_map_bytes, device_);
        const Stream stream(device_);  // a new one: a capture of the thread does not contain the copy
        copy_to_device(stream, copy.address(), encoded_.data(), tensor_map_bytes);
        const Driver& driver = Driver::get();
        const ContextGuard context(device_.context());
        driver.check(driver.api().cuStreamSynchronize(stream.ref().native()), "copying a tensor map");
        copy_.emplace(std::move(copy));
    }
    return copy_->address();
}

bool driver_accepts(const TensorMapDescription& description, Device device) {
    CUtensorMap map{};
    const ContextGuard context(device.context());
    return encode(description, map) == CUDA_SUCCESS;
}

}  // namespace bascule
