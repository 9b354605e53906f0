// `repr` of a DeviceArray: its values, as printed by NumPy. Reads only the ends of a long array, because NumPy prints no more.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/arrays/indexing.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "arrays/array_object.hpp"
#include "arrays/array_transfer.hpp"
#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

constexpr std::uint64_t longest = 1000;  // arrays up to this size are printed whole: NumPy's default
constexpr std::int64_t edge = 3;         // elements printed at each end of an axis of a longer array

std::string place_of(const ArrayObject& array) {
    return fmt::format("{}{}", to_string(array.device), array.view.readonly ? ", read-only" : "");
}

std::string without_values(const ArrayObject& array, const std::string& why) {
    return fmt::format("<bascule.DeviceArray shape={} dtype={} on {}: {}>",
                       bascule::to_string(array.view.shape), std::string(py::str(numpy_dtype(array.view))),
                       place_of(array), why);
}

/// True if the array's stream is being captured. Reading would wait for the stream, which breaks a capture.
bool is_capturing(const ArrayObject& array) {
    const StreamRef stream = stream_for(array, py::none());
    const GilReleased released;
    const ContextGuard context(stream.context());
    return bascule::is_capturing(stream);
}

/// The parts of an axis that are read: (start, stop) in the array, and the position in the printed array.
struct Piece {
    std::int64_t start, stop, at;
};

std::vector<Piece> pieces_of(std::int64_t extent) {
    if (extent <= 2 * edge) return {{0, extent, 0}};
    return {{0, edge + 1, 0}, {extent - edge, extent, edge + 1}};
}

/// A host array that NumPy prints like the whole array. Shortened axes keep one element more than their ends.
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

/// The argument for array2string. A masked array becomes an object array with `--` for invalid elements.
py::object printable(const py::object& host) {
    if (!is_numpy_masked(host)) return host;
    py::object elements = host.attr("data").attr("astype")("O");
    elements[host.attr("mask")] = numpy().attr("ma").attr("masked_print_option");
    return elements;
}

/// The values as printed by NumPy; only the ends of an array with more than `most` elements.
std::string values_of(const py::object& self, std::uint64_t most, const char* prefix) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const bool whole = array.view.size <= most;
    const py::object host = whole ? copy_to_host(self, py::none(), py::none()) : ends_of(array);
    return py::str(numpy().attr("array2string")(printable(host), "separator"_a = ", ", "prefix"_a = prefix,
                                                "threshold"_a = whole ? most : 0, "edgeitems"_a = edge));
}

/// An array's values for its repr, or the reason why they cannot be read.
struct ReadValues {
    std::string values;
    std::string why_not;  ///< empty if they were read
};

ReadValues read_values(const py::object& self, std::uint64_t most, const char* prefix) {
    try {
        if (is_capturing(self.cast<const ArrayObject&>())) return {{}, "its stream is being captured"};
        return {values_of(self, most, prefix), {}};
    } catch (const std::exception& error) {
        // Uses only the first line, because the rest is advice for explicit reads.
        const std::string message = error.what();
        return {{}, "values cannot be read: " + message.substr(0, message.find('\n'))};
    }
}

/// Never throws: if the values cannot be read, describes the array and gives the reason.
std::string repr_of_array(const py::object& self) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const ReadValues read = read_values(self, longest, "DeviceArray(");
    if (!read.why_not.empty()) return without_values(array, read.why_not);
    return fmt::format("DeviceArray({}, shape={}, dtype={}, {})", read.values,
                       bascule::to_string(array.view.shape), std::string(py::str(numpy_dtype(array.view))),
                       place_of(array));
}

/// The same for other displays: place, values (the ends of an array with more than `most` elements), and why_not, which
/// is empty if the values were read.
py::dict facts_of_array(const py::object& self, std::uint64_t most) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const ReadValues read = read_values(self, most, "");
    return py::dict("place"_a = place_of(array), "values"_a = read.values, "why_not"_a = read.why_not);
}

}  // namespace

void bind_array_repr(py::module_& module, ArrayClass& type) {
    type.def("__repr__", &repr_of_array);
    module.def("_array_facts", &facts_of_array, "array"_a, "most"_a);
}

}  // namespace bascule::python
