#include "launch/brackets.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/shortened.hpp>

#include "context/call_site.hpp"
#include "launch/launcher.hpp"
#include "values/values.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

using ErrorKind = ArgumentError::Kind;

[[noreturn]] void fail_brackets(const py::object& key) {
    throw ArgumentError(
        ErrorKind::type,
        fmt::format("the brackets take the grid in blocks and the block in threads: kernel[grid, block], "
                    "kernel[grid, block, stream] or kernel[grid, block, stream, shared_bytes], such as "
                    "kernel[(4, 4), 256]; got {}.{}",
                    PyCallable_Check(key.ptr()) != 0 ? "a function" : shortened(std::string(py::repr(key))),
                    PyCallable_Check(key.ptr()) != 0
                        ? " For a grid that depends on the arguments use kernel.forall(n), or a launch rule: "
                          "@bascule.kernel."
                        : ""));
}

/// Triton's form. Its block size is chosen by the compiler; here the two numbers would be grid and block.
[[noreturn]] void fail_one_tuple(const py::tuple& parts) {
    const std::string tuple = py::repr(parts);
    std::vector<std::string> entries;
    for (const py::handle part : parts) entries.emplace_back(py::repr(part));
    throw ArgumentError(
        ErrorKind::type,
        fmt::format(
            "kernel[{0}] has one tuple in the brackets, which Python passes as if the parentheses were "
            "not there. Write kernel[{0}, block] for a grid of {0} blocks, or kernel[{1}] for a grid of "
            "{2} and a block of {3}.",
            tuple, fmt::join(entries, ", "), entries[0], entries[1]));
}

/// Addresses below this are no stream's: handles are addresses on the heap, but for those of the default streams.
constexpr long long lowest_handle = 1 << 18;

/// Shared bytes where the stream belongs.
void require_handle(const py::tuple& parts) {
    const py::object stream = parts[2];
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(stream.ptr(), &overflow);
    if (overflow != 0 || value <= 2 || value >= lowest_handle) return;
    throw ArgumentError(
        ErrorKind::value,
        fmt::format("the third entry in the brackets is the stream, and {0} is not a stream's handle. Shared "
                    "bytes are the fourth: kernel[{1}, {2}, None, {0}].",
                    value, std::string(py::repr(parts[0])), std::string(py::repr(parts[1]))),
        {.field = "stream"});
}

}  // namespace

py::object launcher_of(const Kernel& kernel, const py::object& key) {
    if (py::isinstance<LaunchConfig>(key)) {
        return make_launcher(kernel, to_plan(key.cast<LaunchConfig>(), py::none()));
    }
    if (PyTuple_Check(key.ptr()) && py::len(key) == 2 &&
        py::isinstance<LaunchConfig>(key.cast<py::tuple>()[0])) {
        const py::tuple pair = key;
        return make_launcher(kernel, to_plan(pair[0].cast<LaunchConfig>(), pair[1]));
    }
    if (!PyTuple_Check(key.ptr()) || py::len(key) < 2 || py::len(key) > 4) {
        fail_brackets(key);
    }
    const py::tuple parts = key;
    const py::object stream = parts.size() > 2 ? py::object(parts[2]) : py::none();
    const py::object shared = parts.size() > 3 ? py::object(parts[3]) : py::int_(0);
    if (PyLong_CheckExact(stream.ptr())) require_handle(parts);
    const LaunchConfig config = to_config(parts[0], parts[1], shared);
    const SubscriptSite place = current_subscript();
    if (place.one_tuple) fail_one_tuple(parts);
    return make_launcher_at(place.site, kernel, to_plan(config, stream));
}

}  // namespace bascule::python
