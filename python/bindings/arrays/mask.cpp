#include "arrays/mask.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <bascule/interface/errors/rejection.hpp>

#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/producer_streams.hpp"
#include "parts.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// The value of a bascule.BitMask: a mask with one bit per element. NumPy has no dtype for it, so it is not a DeviceArray.
struct BitMask {
    ArrayView view;
    py::object owner;   // the owner of the memory
    py::object stream;  // the bound stream's object, or None

    void visit_references(ReferenceVisitor& each) {
        each(owner);
        each(stream);
    }
};

constexpr std::array<std::string_view, 2> cudf = {"cudf", "pylibcudf"};
/// Libraries whose dtypes are exact, so that bytes never stand for bits.
constexpr std::array<std::string_view, 8> exact_libraries = {"bascule", "cupy",       "jax",   "jaxlib",
                                                             "numba",   "numba_cuda", "torch", "warp"};

/// Whether the object's type, or one of its base classes, belongs to one of these packages.
bool comes_from(PyObject* object, std::span<const std::string_view> packages) {
    if (object == nullptr) return false;
    for (const py::handle base : py::tuple(py::type::of(object).attr("__mro__"))) {
        const py::object module = py::getattr(base, "__module__", py::none());
        if (!py::isinstance<py::str>(module)) continue;
        const std::string name = module.cast<std::string>();
        if (std::ranges::find(packages, name.substr(0, name.find('.'))) != packages.end()) return true;
    }
    return false;
}

ArrayView read_view(PyObject* mask, Home& home) {
    std::string absence;
    auto described = read_interface(mask, absence);
    if (!described) {
        reject(ErrorKind::type, {.field = "mask", .got = Py_TYPE(mask)->tp_name},
               "'mask' of __cuda_array_interface__ must be None or an object with __cuda_array_interface__, "
               "got an object of type {} ({}).",
               Py_TYPE(mask)->tp_name, absence);
    }
    if (described->mask) {
        reject_field(ErrorKind::value, "mask",
                     "'mask' of __cuda_array_interface__ has a 'mask' itself: every element of a mask must "
                     "be true or false. Fill the mask's own invalid elements first.");
    }
    find_home(described->view, home);
    if (!interface_sync()) described->view.stream = ignored_stream;
    return described->view;
}

/// Rethrows the error with a message that is about the mask's own descriptor.
[[noreturn]] void fail_inside(const ArgumentError& error) {
    ArgumentError::Details details = error.details();
    if (details.field == "mask") throw error;
    details.field = "mask";
    reject(error.kind(), details, "the array's 'mask': {}", error.what());
}

/// Makes the object for array.view.mask. `owner` keeps its memory alive and `stream_object` its stream.
py::object make_object(const ArrayObject& array, py::object owner, const py::object& stream_object) {
    const ArrayView& view = array.view.mask->array;
    if (array.view.mask->is_bits()) return py::cast(BitMask{view, std::move(owner), stream_object});
    return py::cast(ArrayObject{view, array.device, nullptr, std::move(owner), stream_object});
}

py::dict exported_bits(const BitMask& mask) {
    py::dict fields;
    fields["shape"] = to_tuple(mask.view.shape);
    fields["typestr"] = to_typestr(mask.view.dtype);
    fields["data"] = py::make_tuple(mask.view.empty() ? 0 : mask.view.pointer, mask.view.readonly);
    fields["version"] = 3;
    fields["strides"] = py::none();
    fields["stream"] =
        mask.view.stream ? py::object(py::int_(mask.view.stream.handle)) : py::object(py::none());
    return fields;
}

/// Converts the bits to one bool per element.
py::object unpacked(const py::object& self) {
    const BitMask& mask = self.cast<const BitMask&>();
    py::dict bytes = exported_bits(mask);
    bytes["shape"] = py::make_tuple((mask.view.size + 7) / 8);
    bytes["typestr"] = "|u1";
    const py::object device =
        py::module_::import("bascule._bascule").attr("from_cuda_array_interface")(bytes, self);
    const py::object bits = numpy().attr("unpackbits")(device.attr("copy_to_host")(),
                                                       "count"_a = mask.view.size, "bitorder"_a = "little");
    return bits.attr("view")("bool").attr("reshape")(to_tuple(mask.view.shape));
}

/// The array's mask as numpy.ma has it (true means invalid), with the array's shape.
py::object invalid_on_host(const ArrayObject& array) {
    const py::object valid = array.mask.attr("copy_to_host")();
    return numpy().attr("equal")(numpy().attr("broadcast_to")(valid, to_tuple(array.view.shape)), 0);
}

}  // namespace

std::shared_ptr<const MaskView> read_mask(PyObject* mask, PyObject* producer, const ArrayView& array,
                                          Home& home) {
    try {
        ArrayView view = read_view(mask, home);
        if (may_be_bits(array, view)) {
            if (comes_from(mask, cudf) || comes_from(producer, cudf)) {
                view = as_bits(array, view);
            } else if (!comes_from(mask, exact_libraries)) {
                check_bytes_are_elements(array, view);
            }
        }
        return mask_for(array, view);
    } catch (const ArgumentError& error) {
        fail_inside(error);
    }
}

void set_stream_device(ArrayView& view, Device device) {
    view.stream.device = device.ordinal();
    if (view.mask == nullptr) return;
    MaskView mask = *view.mask;
    mask.array.stream.device = device.ordinal();
    view.mask = std::make_shared<const MaskView>(std::move(mask));
}

void import_mask(ArrayObject& array, const py::object& mask, PyObject* producer, bool sync) {
    if (!mask) return;
    Home home{.device = array.device, .decided = true};
    const std::shared_ptr<const MaskView> read = read_mask(mask.ptr(), producer, array.view, home);
    ArrayView view = read->array;
    py::object stream = py::none();
    if (!sync) {
        view.stream = ignored_stream;
    } else if (view.stream) {
        stream = py::cast(StreamObject{nullptr, StreamRef(view.stream.handle, array.device), mask});
    } else {
        view.stream = array.view.stream;
        stream = array.stream;
    }
    array.view.mask = std::make_shared<const MaskView>(MaskView{view, read->strides});
    array.mask = make_object(array, mask, stream);
}

void derive_mask(ArrayObject& array, const ArrayObject& source) {
    if (array.view.mask == nullptr) return;
    array.mask = make_object(array, source.mask, source.mask.attr("stream"));
}

void share_mask(ArrayObject& copy, const ArrayObject& source) {
    if (source.view.mask == nullptr) return;
    copy.view.mask = mask_for(copy.view, source.view.mask->array);
    copy.mask = source.mask;
}

bool is_numpy_masked(py::handle object) {
    return py::isinstance(object, numpy().attr("ma").attr("MaskedArray"));
}

void upload_mask(ArrayObject& array, const py::object& masked) {
    const py::object mask = numpy().attr("ma").attr("getmask")(masked);
    if (mask.is(numpy().attr("ma").attr("nomask"))) return;
    if (!mask.attr("dtype").attr("names").is_none()) {
        reject(ErrorKind::not_supported,
               "to_device: this masked array has a mask per field, and __cuda_array_interface__ has one per "
               "element. Pass array.data, and the masks of the fields as separate arrays.");
    }
    array.mask = py::module_::import("bascule._bascule")
                     .attr("to_device")(numpy().attr("logical_not")(mask), "stream"_a = array.stream);
    array.view.mask = mask_for(array.view, array.mask.cast<const ArrayObject&>().view);
}

py::object data_to_fill(const ArrayObject& array, const py::object& out) {
    if (!array.mask || out.is_none()) return out;
    if (is_numpy_masked(out)) return out.attr("data");
    reject_field(ErrorKind::value, "out",
                 "the array has a mask, which `out` cannot hold: pass a numpy.ma array, or omit `out` and "
                 "use the .data of the result.");
}

py::object with_host_mask(const ArrayObject& array, const py::object& values, const py::object& out) {
    if (!array.mask) return values;
    const py::object invalid = invalid_on_host(array);
    if (out.is_none()) return numpy().attr("ma").attr("MaskedArray")(values, "mask"_a = invalid);
    out.attr("mask") = invalid;
    return out;
}

void bind_masks(py::module_& module, py::class_<ArrayObject>& type) {
    type.def_property_readonly(
        "mask", [](const ArrayObject& self) { return self.mask ? self.mask : py::object(py::none()); },
        R"(Which elements are valid: None (all of them), a DeviceArray of bools or integers, or a BitMask.

True is valid. The mask has the array's shape or broadcasts to it. numpy.ma uses the opposite convention: to_device and copy_to_host
invert the mask.)");
    py::class_<BitMask>(module, "BitMask", py::is_final(), collected<BitMask>(),
                        R"(A mask with one bit per element, as cuDF uses.

Elements are in C order, least significant bit first within a byte. Keeps the memory alive. Exports `__cuda_array_interface__` with typestr `|t1`.)")
        .def_property_readonly(
            "shape", [](const BitMask& self) { return to_tuple(self.view.shape); },
            "Elements along each axis.")
        .def_property_readonly(
            "size", [](const BitMask& self) { return self.view.size; }, "Number of elements (bits).")
        .def_readonly("stream", &BitMask::stream,
                      "The bound Stream, or None for a view created with sync=False.")
        .def_property_readonly("__cuda_array_interface__", &exported_bits)
        .def("copy_to_host", &unpacked,
             "Copy to a NumPy array with one bool per element, and wait for the copy.")
        .def("__repr__", [](const BitMask& self) {
            return fmt::format("<bascule.BitMask shape={}>", bascule::to_string(self.view.shape));
        });
}

}  // namespace bascule::python
