#include "array_transfer.hpp"

#include <string>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/memory.hpp>

#include "mask.hpp"
#include "numpy_values.hpp"
#include "owners.hpp"
#include "stream_object.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// The lowest byte that an array touches, relative to its pointer, and how many bytes from there.
struct Span {
    std::int64_t start = 0;
    std::size_t bytes = 0;
};

Span span_of(const ArrayView& view) {
    if (view.empty()) return {};
    std::int64_t low = 0;
    std::int64_t high = view.dtype.itemsize;
    for (int d = 0; d < view.ndim(); ++d) {
        const std::int64_t reach = (view.shape[d] - 1) * view.strides[d];
        (reach < 0 ? low : high) += reach;
    }
    return {low, static_cast<std::size_t>(high - low)};
}

py::object copy_values_to_host(const py::object& self, const py::object& out, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const py::object dtype = numpy_dtype(array.view);
    const Span span = span_of(array.view);
    const py::object bytes = numpy().attr("empty")(span.bytes, "u1");
    const StreamRef bound(array.view.has_stream ? array.view.stream : default_stream(array.device).handle(),
                          array.device);
    const StreamRef source = to_stream(stream, array.device).value_or(bound);
    Producer producer{array.view.stream, 0};
    const std::span<const Producer> producers(&producer, array.view.has_stream ? 1 : 0);
    void* destination =
        bytes.attr("ctypes").attr("data").cast<std::uintptr_t>() == 0
            ? nullptr
            : reinterpret_cast<void*>(bytes.attr("ctypes").attr("data").cast<std::uintptr_t>());
    const std::uint64_t address = array.view.pointer + static_cast<std::uint64_t>(span.start);
    OwnerList owners;
    owners.keep(self.ptr());
    {
        const py::gil_scoped_release release;
        copy_to_host(source, destination, address, span.bytes, producers, owners.hand_over());
    }
    const py::object host =
        numpy().attr("ndarray")(to_tuple(array.view.shape), "dtype"_a = dtype, "buffer"_a = bytes,
                                "offset"_a = -span.start, "strides"_a = to_tuple(array.view.strides));
    if (out.is_none()) return array.view.contiguous() ? host : py::object(host.attr("copy")());
    if (!py::object(out.attr("shape")).equal(py::object(host.attr("shape"))) ||
        !py::object(out.attr("dtype")).equal(dtype)) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            fmt::format("`out` must be an array of shape {} and dtype {}.",
                        bascule::to_string(array.view.shape), bascule::to_string(array.view.dtype)),
            {.field = "out"});
    }
    numpy().attr("copyto")(out, host, "casting"_a = "no");
    return out;
}

py::object copy_to_host(const py::object& self, const py::object& out, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    return with_host_mask(array, copy_values_to_host(self, data_to_fill(array, out), stream), out);
}

/// The values as a host array of exactly this shape and dtype, laid out as the device array is.
py::object host_values(const py::object& values, const ArrayView& view) {
    if (is_numpy_masked(values)) {
        throw ArgumentError(
            ArgumentError::Kind::not_supported,
            "`values` is a numpy.ma array, and copy_from_host leaves the mask of an array as it is: "
            "pass values.data, and copy numpy.logical_not of its mask to array.mask.",
            {.field = "values"});
    }
    const py::object dtype = numpy_dtype(view);
    const bool is_array = py::isinstance(values, numpy().attr("ndarray"));
    const py::object host =
        is_array ? values : py::object(numpy().attr("asarray")(values, "dtype"_a = dtype));
    if (!py::object(host.attr("dtype")).equal(dtype) ||
        !py::object(host.attr("shape")).equal(to_tuple(view.shape))) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            fmt::format(
                "`values` must have shape {} and dtype {}, got shape {} and dtype {}. Convert them with "
                ".astype(array.dtype), or spread them with numpy.broadcast_to(values, array.shape).",
                bascule::to_string(view.shape), std::string(py::str(dtype)),
                std::string(py::str(host.attr("shape"))), std::string(py::str(host.attr("dtype")))),
            {.field = "values"});
    }
    return numpy().attr("asarray")(host, "order"_a = view.c_contiguous ? "C" : "F");
}

void copy_from_host(const py::object& self, const py::object& values, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    if (array.view.readonly) {
        throw ArgumentError(ArgumentError::Kind::value, "the array is read-only and cannot be written.",
                            {.field = "values"});
    }
    if (!array.view.contiguous()) {
        throw ArgumentError(ArgumentError::Kind::not_supported,
                            "copy_from_host fills contiguous arrays; this one has gaps between its elements.",
                            {.field = "values"});
    }
    const py::object host = host_values(values, array.view);
    const StreamRef bound(array.view.has_stream ? array.view.stream : default_stream(array.device).handle(),
                          array.device);
    const StreamRef target = to_stream(stream, array.device).value_or(bound);
    Producer producer{array.view.stream, 0};
    const std::span<const Producer> producers(&producer, array.view.has_stream ? 1 : 0);
    const auto source = host.attr("ctypes").attr("data").cast<std::uintptr_t>();
    const std::size_t bytes = array.view.size * array.view.dtype.itemsize;
    OwnerList owners;
    owners.keep(self.ptr());
    owners.keep(host.ptr());  // pinned memory is read later
    const py::gil_scoped_release release;
    copy_to_device(target, array.view.pointer, reinterpret_cast<const void*>(source), bytes, producers,
                   owners.hand_over());
}

}  // namespace

void bind_array_transfer(ArrayClass& type) {
    type.def("copy_to_host", &copy_to_host, py::kw_only(), "out"_a = py::none(), "stream"_a = py::none(),
             R"(Copy to a NumPy array, after everything enqueued on the bound stream; waits until it is there.

out : numpy.ndarray of the same shape and dtype to fill, or None for a new one.
stream : where the copy is enqueued; None means the bound stream.)")
        .def("copy_from_host", &copy_from_host, "values"_a, py::kw_only(), "stream"_a = py::none(),
             R"(Fill the array with host values, after everything enqueued on the bound stream; does not wait.

values : numpy.ndarray of the same shape and dtype, or numbers of that shape; free to change when this returns.
stream : where the copy is enqueued; None means the bound stream.)");
}

}  // namespace bascule::python
