#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/textures/cuda_array.hpp>
#include <bascule/runtime/trace/ordered_call.hpp>

namespace bascule {
namespace {

/// Extents as the driver counts them: an array with height 0 is one-dimensional.
struct Extents {
    std::size_t width = 0, height = 0, depth = 0;

    std::size_t rows() const noexcept { return std::max<std::size_t>(height, 1); }
    std::size_t slices() const noexcept { return std::max<std::size_t>(depth, 1); }
};

Extents extents_of(const Dimensions& texels, const CudaArrayOptions& options) {
    const int axes = texels.size();
    const int least = options.cube ? 3 : options.layered ? 2 : 1;
    const int most = 3;
    if (axes < least || axes > most) {
        reject_field(ErrorKind::value, "shape", "{} has {} axes{}, got {}.",
                     options.cube      ? "a cube"
                     : options.layered ? "a layered CUDA array"
                                       : "a CUDA array",
                     least == most ? "3" : fmt::format("{} to {}", least, most),
                     options.channels > 1 ? fmt::format(" and one of {} channels", options.channels) : "",
                     axes);
    }
    const auto extent = [&](int from_last) { return static_cast<std::size_t>(texels[axes - 1 - from_last]); };
    for (const std::int64_t each : texels) {
        if (each < 1)
            reject_field(ErrorKind::value, "shape", "a CUDA array has no empty axis, got {}.",
                         to_string(texels));
    }
    if (options.cube) {
        const std::size_t faces = extent(2);
        const bool fits = options.layered ? faces % 6 == 0 : faces == 6;
        if (!fits || extent(0) != extent(1)) {
            reject_field(ErrorKind::value, "shape", "a cube has {} faces, which are squares, got {}.",
                         options.layered ? "6 in each layer" : "6", to_string(texels));
        }
    }
    if (options.layered && axes == 2) return {extent(0), 0, extent(1)};
    return {extent(0), axes > 1 ? extent(1) : 0, axes > 2 ? extent(2) : 0};
}

/// The device attributes that limit the extents of one kind of array; 0 for an extent that the kind lacks.
struct Bounds {
    CUdevice_attribute width, height, depth;
};
constexpr CUdevice_attribute none{};

#define BASCULE_BOUNDS(kind)                                                                              \
    {                                                                                                     \
        {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##1D_WIDTH, none, none},                                       \
            {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##2D_HEIGHT, \
             none},                                                                                       \
            {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##3D_HEIGHT, \
             CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##3D_DEPTH},                                               \
            {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##1D_LAYERED_WIDTH, none,                                  \
             CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##1D_LAYERED_LAYERS},                                      \
            {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##2D_LAYERED_WIDTH,                                        \
             CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##2D_LAYERED_HEIGHT,                                       \
             CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##2D_LAYERED_LAYERS},                                      \
            {CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##CUBEMAP_WIDTH,                                           \
             CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##CUBEMAP_WIDTH, none},                                    \
        {                                                                                                 \
            CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##CUBEMAP_LAYERED_WIDTH,                                    \
                CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##CUBEMAP_LAYERED_WIDTH,                                \
                CU_DEVICE_ATTRIBUTE_MAXIMUM_##kind##CUBEMAP_LAYERED_LAYERS                                \
        }                                                                                                 \
    }
/// Limits by kind: plain arrays by number of dimensions, layered arrays, cubes, layered cubes.
constexpr Bounds texture_bounds[] = BASCULE_BOUNDS(TEXTURE);
constexpr Bounds surface_bounds[] = BASCULE_BOUNDS(SURFACE);
#undef BASCULE_BOUNDS

std::size_t kind_of(const Extents& extents, const CudaArrayOptions& options) {
    if (options.cube) return options.layered ? 6 : 5;
    if (options.layered) return extents.height == 0 ? 3 : 4;
    return extents.height == 0 ? 0 : extents.depth == 0 ? 1 : 2;
}

/// Checks the limits with a better message than the driver's "invalid argument".
void check_bounds(const Extents& extents, const CudaArrayOptions& options, const Dimensions& shape,
                  Device device) {
    const std::size_t kind = kind_of(extents, options);
    const auto check = [&](const Bounds& bounds) {
        const auto most = [&](CUdevice_attribute which) -> std::size_t {
            if (which == none) return SIZE_MAX;
            return static_cast<std::size_t>(Driver::get().attribute_of(device.ordinal(), which));
        };
        const std::size_t width = most(bounds.width), height = most(bounds.height),
                          depth = most(bounds.depth);
        if (extents.width <= width && extents.height <= height && extents.depth <= depth) return;
        reject_field(ErrorKind::value, "shape",
                     "a CUDA array of this kind has at most {}{}{} texels on {}, got shape {}.",
                     depth == SIZE_MAX ? "" : fmt::format("{} x ", depth),
                     height == SIZE_MAX ? "" : fmt::format("{} x ", height), width, device.name(),
                     to_string(shape));
    };
    check(texture_bounds[kind]);
    if (options.surface) check(surface_bounds[kind]);
    if (options.gather) {
        check({CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
               CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, none});
    }
}

unsigned flags_of(const CudaArrayOptions& options) {
    return (options.layered ? CUDA_ARRAY3D_LAYERED : 0u) | (options.cube ? CUDA_ARRAY3D_CUBEMAP : 0u) |
           (options.surface ? CUDA_ARRAY3D_SURFACE_LDST : 0u) |
           (options.gather ? CUDA_ARRAY3D_TEXTURE_GATHER : 0u);
}

/// Makes an owner that keeps `object` alive until an operation has finished.
template <class T>
Owner owner_of(const std::shared_ptr<T>& object) {
    using Kept = std::shared_ptr<T>;
    return {new Kept(object), &delete_owners<Kept>, 0};
}

void enqueue(StreamRef stream, const CUDA_MEMCPY3D& copy, CallKind kind, std::span<const Producer> producers,
             const char* doing, bool waits = false) {
    enqueue_in_order(kind, copy.WidthInBytes * copy.Height * copy.Depth, stream, producers, doing,
                     [&](const DriverFunctions& api) {
                         if (waits) stream.finish_before_blocking_call("a copy of a CUDA array");
                         return api.cuMemcpy3DAsync(&copy, stream.native());
                     });
}

}  // namespace

struct CudaArray::State {
    State(std::span<const std::int64_t> asked, DType dtype, const CudaArrayOptions& how, StreamRef on)
        : shape(asked), format{dtype, how.channels}, options(how), stream(on) {
        CUDA_ARRAY3D_DESCRIPTOR description{};
        description.Format = static_cast<CUarray_format>(driver_format(format));
        description.NumChannels = static_cast<unsigned>(how.channels);
        extents = extents_of(texel_shape(shape, how.channels), how);
        if (how.gather && (how.layered || how.cube || extents.height == 0 || extents.depth != 0))
            reject_field(ErrorKind::value, "gather",
                         "only CUDA arrays of two dimensions can be made for tex2Dgather.");
        check_bounds(extents, how, shape, on.device());
        description.Width = extents.width;
        description.Height = extents.height;
        description.Depth = extents.depth;
        description.Flags = flags_of(how);
        view.dtype = dtype;
        view.shape = shape;
        view.strides = c_strides(shape, dtype.itemsize);
        view.size =
            extents.width * extents.rows() * extents.slices() * static_cast<std::uint64_t>(how.channels);
        view.c_contiguous = true;
        view.stream = {on.handle(), -1, StreamSource::own};
        const Driver& driver = Driver::get();
        const ContextGuard context(on.device().context());
        driver.check(
            driver.api().cuArray3DCreate(&handle, &description),
            fmt::format("making a CUDA array of shape {} and dtype {}", to_string(shape), to_string(dtype)));
    }
    ~State() {
        if (handle == nullptr) return;
        end_in_context(stream.device(), [&](const Driver& driver) {
            driver.report(driver.api().cuArrayDestroy(handle), "freeing a CUDA array");
        });
    }
    State(State&&) = delete;

    std::size_t bytes() const noexcept {
        return extents.width * extents.rows() * extents.slices() * format.bytes();
    }
    /// A copy of the whole array. The caller sets the other side.
    CUDA_MEMCPY3D whole() const noexcept {
        CUDA_MEMCPY3D copy{};
        copy.WidthInBytes = extents.width * format.bytes();
        copy.Height = extents.rows();
        copy.Depth = extents.slices();
        copy.srcPitch = copy.dstPitch = copy.WidthInBytes;
        copy.srcHeight = copy.dstHeight = copy.Height;
        copy.srcArray = copy.dstArray = handle;
        copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        return copy;
    }

    Dimensions shape;
    TexelFormat format;
    CudaArrayOptions options;
    StreamRef stream;
    Extents extents;
    ArrayView view;
    CUarray handle = nullptr;
};

CudaArray::CudaArray(std::span<const std::int64_t> shape, DType dtype, const CudaArrayOptions& options,
                     StreamRef stream)
    : state_(std::make_shared<State>(shape, dtype, options, stream)) {}
CudaArray::~CudaArray() = default;
CudaArray::CudaArray(CudaArray&& other) noexcept = default;
CudaArray& CudaArray::operator=(CudaArray&& other) noexcept = default;

const Dimensions& CudaArray::shape() const noexcept { return state_->shape; }
const TexelFormat& CudaArray::format() const noexcept { return state_->format; }
const CudaArrayOptions& CudaArray::options() const noexcept { return state_->options; }
std::size_t CudaArray::bytes() const noexcept { return state_->bytes(); }
StreamRef CudaArray::stream() const noexcept { return state_->stream; }
CUarray_st* CudaArray::handle() const noexcept { return state_->handle; }
const ArrayView& CudaArray::view() const noexcept { return state_->view; }

/// A copy of the whole array on a stream. Keeps everything it needs until the device has finished.
struct CudaArray::Copy {
    Copy(const CudaArray& array, StreamRef stream, const Owners& owners)
        : self(owner_of(array.state_)),
          self_kept(stream, own),
          others_kept(stream, owners),
          context(stream.context()),
          description(array.state_->whole()) {}

    Owner self;
    Owners own{self};
    OwnersKept self_kept, others_kept;
    ContextGuard context;
    CUDA_MEMCPY3D description;  ///< from the array to itself; one side is then replaced
};

void CudaArray::copy_from_device(StreamRef stream, std::uint64_t source, std::span<const Producer> producers,
                                 const Owners& owners) const {
    Copy copy(*this, stream, owners);
    copy.description.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.description.srcArray = nullptr;
    copy.description.srcDevice = source;
    enqueue(stream, copy.description, CallKind::copy, producers, "copying to a CUDA array");
}

void CudaArray::copy_to_device(StreamRef stream, std::uint64_t destination,
                               std::span<const Producer> producers, const Owners& owners) const {
    Copy copy(*this, stream, owners);
    copy.description.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.description.dstArray = nullptr;
    copy.description.dstDevice = destination;
    enqueue(stream, copy.description, CallKind::copy, producers, "copying from a CUDA array");
}

void CudaArray::copy_from_host(StreamRef stream, const void* source, std::span<const Producer> producers,
                               const Owners& owners) const {
    Copy copy(*this, stream, owners);
    copy.description.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.description.srcArray = nullptr;
    copy.description.srcHost = source;
    const bool waits = capture_of(stream).status != CaptureState::Status::active &&
                       Driver::get().memory_type_of(source) != CU_MEMORYTYPE_HOST;
    enqueue(stream, copy.description, CallKind::copy_to_device, producers, "copying to a CUDA array", waits);
    if (waits) stream.synchronize();
}

void CudaArray::copy_to_host(StreamRef stream, void* destination, std::span<const Producer> producers,
                             const Owners& owners) const {
    const ResetWatch resets;
    Copy copy(*this, stream, owners);
    copy.description.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.description.dstArray = nullptr;
    copy.description.dstHost = destination;
    const bool waits = Driver::get().memory_type_of(destination) != CU_MEMORYTYPE_HOST;
    if (waits) require_no_capture(stream, "copying to memory that is not pinned");
    enqueue(stream, copy.description, CallKind::copy_to_host, producers, "copying from a CUDA array", waits);
    if (!waits) return;
    stream.synchronize();
    resets.check("copying from a CUDA array");
}

}  // namespace bascule
