// Sources: the CUDA Array Interface, versions 0, 2 and 3 (required keys, strides, zero-size arrays, stream);
// NumPy's array interface.

#include <fmt/format.h>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule {
namespace {

constexpr std::int64_t newest_version = 3;

[[noreturn]] void fail(const char* field, const std::string& got, const std::string& why) {
    reject(ErrorKind::value, {.field = field, .got = got}, "'{}' of __cuda_array_interface__ is {}: {}.",
           field, got, why);
}

void check_version(const RawInterface& raw) {
    if (raw.version < 0) {
        fail("version", std::to_string(raw.version), "versions count from 0");
    }
    if (raw.version > newest_version && !raw.accept_newer) {
        fail("version", std::to_string(raw.version),
             "this Bascule knows versions 0 to 3. Export one of them, or set "
             "bascule.config.accept_newer_interface = True to read it by the rules of version 3");
    }
}

void check_reach(const ArrayView& view) {
    const Reach reach = reach_of(view);
    if (reach == Reach::fits) [[likely]]
        return;
    const std::string shape = shortened(to_string(view.shape));
    const std::string strides = shortened(to_string(view.strides));
    if (reach == Reach::too_far)
        fail("strides", strides, fmt::format("with shape {} that reaches beyond 2**63 bytes", shape));
    if (reach == Reach::leaves) {
        fail("data", fmt::format("{:#x}", view.pointer),
             fmt::format("with shape {} and strides {} the array would leave the 64-bit address space", shape,
                         strides));
    }
}

void read_strides(const RawInterface& raw, ArrayView& view) {
    if (!raw.has_strides) {
        view.strides = c_strides(view.shape, view.dtype.itemsize);
        return;
    }
    if (raw.strides.size() != raw.shape.size()) {
        fail("strides", shortened(to_string(raw.strides)),
             fmt::format("there must be one for each of the {} dimensions of 'shape'", raw.shape.size()));
    }
    view.strides = view.empty() ? c_strides(view.shape, view.dtype.itemsize) : raw.strides;
}

void read_pointer(const RawInterface& raw, ArrayView& view) {
    if (view.empty()) {
        view.pointer = raw.pointer_is_none ? 0 : raw.pointer;
        return;
    }
    if (raw.pointer_is_none) {
        reject(ErrorKind::type, {.field = "data", .got = "None"},
               "'data' of __cuda_array_interface__ has None for an address: only an empty array may.");
    }
    if (raw.pointer == 0) {
        fail("data", "(0, ...)",
             fmt::format("a null pointer cannot hold an array of shape {}", shortened(to_string(raw.shape))));
    }
    view.pointer = raw.pointer;
    check_reach(view);
}

void read_stream(const RawInterface& raw, ArrayView& view) {
    if (raw.stream == 0U) {
        fail("stream", "0",
             "the interface forbids 0, which could mean no stream or either default stream; say None, 1 "
             "(legacy default), 2 (per-thread default) or a handle");
    }
    view.stream.handle = raw.stream.value_or(0);
}

}  // namespace

bool is_packed(const ArrayView& view, bool c_order) noexcept {
    if (view.empty()) return true;
    std::int64_t expected = view.dtype.itemsize;
    for (int i = 0; i < view.ndim(); ++i) {
        const int d = c_order ? view.ndim() - 1 - i : i;
        if (view.shape[d] == 1) continue;
        if (view.strides[d] != expected) return false;
        expected *= view.shape[d];
    }
    return true;
}

void find_contiguity(ArrayView& view) noexcept {
    view.c_contiguous = is_packed(view, true);
    view.f_contiguous = is_packed(view, false);
}

std::uint64_t count_elements(const Dimensions& shape, std::uint32_t itemsize, FailField fail) {
    bool empty = false;
    bool overflows = false;
    std::int64_t bytes = itemsize;
    for (const std::int64_t extent : shape) {
        if (extent < 0) [[unlikely]]
            fail("shape", shortened(to_string(shape)), "an extent cannot be negative");
        empty = empty || extent == 0;
        overflows = __builtin_mul_overflow(bytes, extent, &bytes) || overflows;
    }
    if (empty) return 0;
    if (overflows) [[unlikely]]
        fail("shape", shortened(to_string(shape)),
             fmt::format("with {} bytes per element that is more than 2**63 bytes", itemsize));
    return static_cast<std::uint64_t>(bytes) / itemsize;
}

Reach reach_of(const ArrayView& view) noexcept {
    std::uint64_t low = view.pointer;
    std::uint64_t high = view.pointer;
    bool leaves = __builtin_add_overflow(high, std::uint64_t{view.dtype.itemsize} - 1, &high);
    for (int d = 0; d < view.ndim(); ++d) {
        std::int64_t reach = 0;
        if (__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &reach)) return Reach::too_far;
        if (reach < 0) {
            leaves = __builtin_sub_overflow(low, -static_cast<std::uint64_t>(reach), &low) || leaves;
        } else {
            leaves = __builtin_add_overflow(high, static_cast<std::uint64_t>(reach), &high) || leaves;
        }
    }
    return leaves ? Reach::leaves : Reach::fits;
}

ArrayView validate(const RawInterface& raw) {
    check_version(raw);
    ArrayView view;
    view.version = raw.version;
    view.dtype = parse_typestr(raw.typestr);
    view.shape = raw.shape;
    view.size = count_elements(raw.shape, view.dtype.itemsize, &fail);
    view.readonly = raw.readonly;
    read_strides(raw, view);
    read_pointer(raw, view);
    read_stream(raw, view);
    find_contiguity(view);
    return view;
}

Dimensions c_strides(const Dimensions& shape, std::uint32_t itemsize) noexcept {
    Dimensions strides = shape;
    std::uint64_t stride = itemsize;  // unsigned, since it may overflow for an empty array
    for (int d = shape.size() - 1; d >= 0; --d) {
        strides[d] = static_cast<std::int64_t>(stride);
        stride *= static_cast<std::uint64_t>(shape[d]);
    }
    return strides;
}

std::string describe(const ArrayView& view) {
    const std::string dtype = to_string(view.dtype);
    const char* article = dtype[0] == 'i' ? "an" : "a";
    std::string text =
        view.layout != nullptr ? fmt::format("an array of structures {} and shape {}",
                                             to_string(*view.layout), to_string(view.shape))
        : view.dtype.kind == DType::Kind::opaque && view.dtype.format == DType::Format::none
            ? fmt::format("an array of shape {} with elements of {}", to_string(view.shape), dtype)
        : view.dtype.kind == DType::Kind::bit
            ? fmt::format("an array of shape {} with {}", to_string(view.shape), dtype)
            : fmt::format("{} {} array of shape {}", article, dtype, to_string(view.shape));
    if (!view.c_contiguous) text += fmt::format(" with strides {}", to_string(view.strides));
    if (view.in_constant_memory) text += " in constant memory";
    if (view.readonly) text += " that is read-only";
    if (view.mask != nullptr) text += view.readonly ? " and has a mask" : " with a mask";
    return text;
}

}  // namespace bascule
