// bascule.tensor_map and bascule.TensorMap.
#include "textures/tensor_map_object.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/errors/rejection.hpp>

#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

bool has_same_place(const ArrayView& before, const ArrayView& now) noexcept {
    return before.pointer == now.pointer && std::ranges::equal(before.shape, now.shape) &&
           std::ranges::equal(before.strides, now.strides);
}

py::object bytes_or_none(int bytes) { return bytes == 0 ? py::object(py::none()) : py::int_(bytes); }

py::object corners_of(const TensorMapObject& self) {
    if (!self.options.im2col) return py::none();
    return py::make_tuple(to_tuple(self.options.im2col->lower), to_tuple(self.options.im2col->upper));
}

py::object element_strides_of(const TensorMapObject& self) {
    const Dimensions& steps = self.options.element_strides;
    return steps.size() != 0 ? py::object(to_tuple(steps)) : py::none();
}

std::string repr_of_map(const TensorMapObject& self) {
    std::string text = "<bascule.TensorMap of " + self.describe();
    for (const auto& [name, bytes] : {std::pair{"swizzle", self.options.swizzle},
                                      {"interleave", self.options.interleave},
                                      {"l2_promotion", self.options.l2_promotion}}) {
        if (bytes != 0) text += fmt::format(", {} {}", name, bytes);
    }
    if (self.options.fill == TensorMapFill::nan) text += ", fill nan";
    return fmt::format("{}, on {}>", text, to_string(self.newest()->device()));
}

// --- bascule.tensor_map

/// Reads one number, or a tuple of them.
Dimensions numbers_of(const py::object& given, const char* field) {
    const bool several = py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given);
    return to_integers(several ? given : py::object(py::make_tuple(given)), field);
}

/// Reads a number of bytes; 0 for None.
int bytes_of(const py::object& given, const char* field) {
    if (given.is_none()) return 0;
    const std::int64_t bytes = to_integers(py::make_tuple(given), field)[0];
    return bytes > 0 && bytes <= 1024 ? static_cast<int>(bytes)
                                      : -1;  // the rules refuse -1, as all above 256
}

TensorMapFill fill_of(const py::object& given) {
    if (given.equal(py::str("zeros"))) return TensorMapFill::zeros;
    if (given.equal(py::str("nan"))) return TensorMapFill::nan;
    reject_field(ErrorKind::value, "fill", "'fill' is one of 'zeros', 'nan', got {}.",
                 std::string(py::repr(given)));
}

std::optional<Im2col> corners(const py::object& given) {
    if (given.is_none()) return std::nullopt;
    const bool pair =
        (py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given)) && py::len(given) == 2;
    if (!pair)
        reject_field(
            ErrorKind::type, "im2col",
            "'im2col' is a pair of corners (lower, upper), each a tuple with an offset per spatial axis, got {}.",
            std::string(py::repr(given)));
    return Im2col{numbers_of(py::object(given[py::int_(0)]), "im2col"),
                  numbers_of(py::object(given[py::int_(1)]), "im2col")};
}

std::unique_ptr<TensorMapObject> tensor_map(const py::object& array, const py::object& box,
                                            const py::object& element_strides, const py::object& swizzle,
                                            const py::object& interleave, const py::object& l2_promotion,
                                            const py::object& fill, const py::object& im2col) {
    TensorMapOptions options{numbers_of(box, "box")};
    if (!element_strides.is_none()) options.element_strides = numbers_of(element_strides, "element_strides");
    options.swizzle = bytes_of(swizzle, "swizzle");
    options.interleave = bytes_of(interleave, "interleave");
    options.l2_promotion = bytes_of(l2_promotion, "l2_promotion");
    options.fill = fill_of(fill);
    options.im2col = corners(im2col);
    Device device = current_device();
    const std::optional<ArrayView> view = read_array_alone(array.ptr(), device);
    if (!view) {
        reject_field(
            ErrorKind::type, "array",
            "a tensor map is made of a device array, got an object of type {}. bascule.to_device(x) copies a "
            "host array.",
            Py_TYPE(array.ptr())->tp_name);
    }
    return std::make_unique<TensorMapObject>(array, *view, std::move(options), device);
}

template <class... Members>
void assign(std::tuple<Members&...> members, const py::tuple& values) {
    members = values.cast<std::tuple<Members...>>();
}

/// Returns the argument that breaks a rule and the sentence, or None; and whether the driver accepts the description. For tests.
py::tuple verdicts_on_tensor_map(const py::tuple& description) {
    TensorMapDescription d;
    bool nan = false;
    assign(std::tie(d.type, d.itemsize, d.floating, d.rank, d.address, d.extents, d.strides, d.box,
                    d.element_strides, d.swizzle, d.interleave, d.l2_promotion, nan, d.is_im2col, d.channels,
                    d.pixels, d.lower, d.upper),
           description);
    d.fill = nan ? TensorMapFill::nan : TensorMapFill::zeros;
    const auto broken = broken_rule(d);
    const Device device = current_device();
    const bool accepted = without_gil([&] { return driver_accepts(d, device); });
    return py::make_tuple(broken ? py::object(py::make_tuple(broken->field, broken->sentence)) : py::none(),
                          accepted);
}

}  // namespace

SharedTensorMap::SharedTensorMap(const ArrayView& array, const TensorMapOptions& options, Device device) {
    auto made = without_gil([&] { return std::make_unique<const TensorMap>(array, options, device); });
    capsule_ = py::capsule(made.get(), [](void* map) { delete static_cast<const TensorMap*>(map); });
    map_ = made.release();
}

TensorMapObject::TensorMapObject(py::object the_array, const ArrayView& view, TensorMapOptions the_options,
                                 Device device)
    : array(std::move(the_array)), options(std::move(the_options)), map_(view, options, device) {
    parameter_.type.constant = true;
    // DLPack's types have traits that those of numbers equal; small formats have no others.
    if (const auto type = dlpack::data_type_of(view.dtype))
        parameter_.plain = dlpack::traits_of(*type) | bascule::detail::readonly_trait;
}

SharedTensorMap TensorMapObject::newest() const {
    const std::lock_guard lock(mutex_);
    return map_;
}

SharedTensorMap TensorMapObject::current(const ArrayView& view) const {
    SharedTensorMap known = newest();
    const ArrayView& before = known->argument().array;
    if (!(before.dtype == view.dtype) || before.ndim() != view.ndim()) {
        reject(ErrorKind::value, "the tensor map was made of {}, which is {} now: make it again.",
               bascule::describe(before), bascule::describe(view));
    }
    if (has_same_place(before, view)) return known;
    SharedTensorMap made(view, options, known->device());
    const std::lock_guard lock(mutex_);
    std::swap(map_, made);
    return map_;
}

std::string TensorMapObject::describe() const {
    return fmt::format("{}, {} {}", bascule::describe(newest()->argument().array),
                       options.im2col ? "pixels and channels" : "box", bascule::to_string(options.box));
}

void bind_tensor_maps(py::module_& module) {
    py::class_<TensorMapObject> type(
        module, "TensorMap", py::is_final(), collected<TensorMapObject>(),
        "Boxes of an array as the Tensor Memory Accelerator (TMA) copies them, made by `bascule.tensor_map`: an argument for a "
        "parameter\nof type `const __grid_constant__ CUtensorMap` or `const CUtensorMap*`.");
    type.def_property_readonly(
            "array", [](const TensorMapObject& self) { return self.array; },
            "What it was made of, which it keeps alive.")
        .def_property_readonly(
            "box", [](const TensorMapObject& self) { return to_tuple(self.options.box); },
            "Elements per axis of one box, outermost first; with `im2col` the pixels and channels of one load.")
        .def_property_readonly(
            "bytes", [](const TensorMapObject& self) { return self.newest()->bytes(); },
            "Bytes that one load or store of a box moves: what `mbarrier.arrive.expect_tx` needs.")
        .def_property_readonly(
            "shape",
            [](const TensorMapObject& self) { return to_tuple(self.newest()->argument().array.shape); },
            "The array's extents when the map was last encoded.")
        .def_property_readonly(
            "dtype", [](const TensorMapObject& self) { return numpy_dtype(self.newest()->argument().array); },
            "The array's element type.")
        .def_property_readonly("element_strides", &element_strides_of,
                               "Steps within the box, per axis, or None.")
        .def_property_readonly(
            "swizzle", [](const TensorMapObject& self) { return bytes_or_none(self.options.swizzle); },
            "32, 64, 128 or None.")
        .def_property_readonly(
            "interleave", [](const TensorMapObject& self) { return bytes_or_none(self.options.interleave); },
            "16, 32 or None.")
        .def_property_readonly(
            "l2_promotion",
            [](const TensorMapObject& self) { return bytes_or_none(self.options.l2_promotion); },
            "64, 128, 256 or None.")
        .def_property_readonly(
            "fill",
            [](const TensorMapObject& self) {
                return self.options.fill == TensorMapFill::nan ? "nan" : "zeros";
            },
            "'zeros' or 'nan'.")
        .def_property_readonly("im2col", &corners_of, "The corners (lower, upper), or None.")
        .def_property_readonly(
            "encoded",
            [](const TensorMapObject& self) {
                const SharedTensorMap map = self.newest();
                return py::bytes(reinterpret_cast<const char*>(map->encoded().data()), tensor_map_bytes);
            },
            "The 128 bytes of the CUtensorMap, for arrays of maps and for other libraries. They name the address that the array "
            "had when it was last encoded, and do not keep the array alive.")
        .def_property_readonly("device", [](const TensorMapObject& self) { return self.newest()->device(); })
        .def("__repr__", &repr_of_map);
    detail::tensor_map_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    module.def("_tensor_map_verdicts", &verdicts_on_tensor_map);
    module.def(
        "tensor_map", &tensor_map, "array"_a, "box"_a, py::kw_only(), "element_strides"_a = py::none(),
        "swizzle"_a = py::none(), "interleave"_a = py::none(), "l2_promotion"_a = py::none(),
        "fill"_a = "zeros", "im2col"_a = py::none(),
        R"(Make a tensor map of an array: how the Tensor Memory Accelerator (TMA) of compute capability 9.0 copies boxes of it.

array : a device array of any library, of 1 to 5 dimensions, read where it lies and kept alive. It begins at a multiple of 16 bytes, the
elements of its last axis follow each other, and its other strides are positive multiples of 16 bytes.
box : elements of one box on each axis, 1 to 256, in the array's order: outermost first. A row is a multiple of 16 bytes. CUDA counts
axes from the innermost, so the kernel passes the coordinates the other way round: (column, row) for a box of (rows, columns).
element_strides : steps of 1 to 8 elements within the box; one load then has ceil(box / steps) elements on each axis.
swizzle : 32, 64 or 128: bytes within which 16-byte pieces are exchanged against bank conflicts. A row has at most as many.
interleave : 16 or 32: bytes of channels that lie together, for arrays of 3 to 5 dimensions.
l2_promotion : 64, 128 or 256: bytes that are read into the L2 cache at least.
fill : what a load writes outside of the array: 'zeros', or 'nan' for floats.
im2col : the corners (lower, upper) of the pixels of a convolution over an array (N, W, C), (N, H, W, C) or (N, D, H, W, C): offsets from
the first and from the last pixel on each spatial axis. `box` is then (pixels, channels) of one load, up to 1024 and 256.

The kernel declares `const __grid_constant__ CUtensorMap`, or `const CUtensorMap*` for a copy in device memory that the map owns. A launch
is ordered with the array's stream as if it took the array; the array is read again at each launch, and the map is encoded again if
its address, shape or strides have changed. A map of a read-only array is for loads: what a kernel does with it cannot be checked.

Raises ArgumentError that names the argument which breaks a rule, and CudaError.

`bascule.tensor_map(x, (64, 64), swizzle=128).bytes` is 8192 for an array of float16.)");
}

}  // namespace bascule::python
