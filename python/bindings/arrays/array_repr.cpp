// Only the ends of a long array are read: NumPy prints no more than those.
#include "arrays/array_repr.hpp"

#include <vector>

#include <fmt/format.h>

#include <bascule/interface/arrays/indexing.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>

#include "arrays/array_object.hpp"
#include "arrays/array_transfer.hpp"
#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "values/dtype_object.hpp"
#include "values/numpy_values.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

constexpr std::uint64_t longest = 1000;  // elements that are all printed: NumPy's own default
constexpr std::int64_t edge = 3;         // of a longer array, elements at each end of an axis

std::string place_of(const ArrayObject& array) {
    return fmt::format("{}{}", to_string(array.device), array.view.readonly ? ", read-only" : "");
}

std::string without_values(const ArrayObject& array, const std::string& why) {
    return fmt::format("<bascule.DeviceArray shape={} dtype={} on {}: {}>",
                       bascule::to_string(array.view.shape), std::string(py::str(numpy_dtype(array.view))),
                       place_of(array), why);
}

/// Reading would wait for the stream, which breaks a capture.
bool is_capturing(const ArrayObject& array) {
    const StreamRef stream = stream_for(array, py::none());
    const ContextGuard context(stream.context());
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = Driver::get().api().cuStreamIsCapturing(stream.native(), &status);
    return code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/// The pieces that an axis is read in: (start, stop) of the array and where it goes in what is printed.
struct Piece {
    std::int64_t start, stop, at;
};

std::vector<Piece> pieces_of(std::int64_t extent) {
    if (extent <= 2 * edge) return {{0, extent, 0}};
    return {{0, edge + 1, 0}, {extent - edge, extent, edge + 1}};
}

/// A host array whose printed form is the whole array's: axes that are cut keep one element more than their
/// ends.
py::object ends_of(const ArrayObject& array) {
    const ArrayView& view = array.view;
    py::tuple shape(static_cast<std::size_t>(view.ndim()));
    std::vector<std::vector<Piece>> pieces;
    for (int d = 0; d < view.ndim(); ++d) {
        pieces.push_back(pieces_of(view.shape[d]));
        const Piece& last = pieces.back().back();
        shape[static_cast<std::size_t>(d)] = py::int_(last.at + last.stop - last.start);
    }
    const py::object library = array.mask ? py::object(numpy().attr("ma")) : numpy();
    py::object host = library.attr("empty")(shape, "dtype"_a = numpy_dtype(view));
    std::vector<std::size_t> chosen(pieces.size(), 0);
    for (bool more = true; more;) {
        std::vector<IndexEntry> index;
        py::tuple target(pieces.size());
        for (std::size_t d = 0; d < pieces.size(); ++d) {
            const Piece& piece = pieces[d][chosen[d]];
            IndexEntry entry;
            entry.kind = IndexEntry::Kind::slice;
            entry.start = piece.start;
            entry.stop = piece.stop;
            index.push_back(entry);
            target[d] = py::slice(piece.at, piece.at + piece.stop - piece.start, 1);
        }
        const auto piece_of = [&](const ArrayView& all) { return index_array(all, index); };
        host[target] = copy_to_host(py::cast(changed(array, piece_of)), py::none(), py::none());
        more = false;
        for (std::size_t d = 0; d < pieces.size() && !more; ++d) {
            chosen[d] = (chosen[d] + 1) % pieces[d].size();
            more = chosen[d] != 0;
        }
    }
    return host;
}

/// What array2string prints: a masked array as objects that are `--` where it is invalid.
py::object printable(const py::object& host) {
    if (!is_numpy_masked(host)) return host;
    py::object elements = host.attr("data").attr("astype")("O");
    elements[host.attr("mask")] = numpy().attr("ma").attr("masked_print_option");
    return elements;
}

std::string with_values(const py::object& self) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const bool whole = array.view.size <= longest;
    const py::object host = whole ? copy_to_host(self, py::none(), py::none()) : ends_of(array);
    const py::object text =
        numpy().attr("array2string")(printable(host), "separator"_a = ", ", "prefix"_a = "DeviceArray(",
                                     "threshold"_a = whole ? longest : 0, "edgeitems"_a = edge);
    const std::string values = py::str(text);
    return fmt::format("DeviceArray({}, shape={}, dtype={}, {})", values,
                       bascule::to_string(array.view.shape), std::string(py::str(numpy_dtype(array.view))),
                       place_of(array));
}

}  // namespace

std::string repr_of_array(const py::object& self) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    std::string why;
    try {
        if (!is_capturing(array)) return with_values(self);
        why = "its stream is being captured";
    } catch (const std::exception& error) {
        // The first line: the rest is advice for explicit reads.
        why = error.what();
        why = "values cannot be read: " + why.substr(0, why.find('\n'));
    }
    return without_values(array, why);
}

}  // namespace bascule::python
