// bascule.Launcher is a heap type with vectorcall, because a pybind11 call costs more than the rest of a launch.
#include "launch/launcher.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

#include "classes/callable_object.hpp"
#include "context/stream_object.hpp"
#include "launch/explanation.hpp"
#include "launch/known_launchers.hpp"
#include "parts.hpp"
#include "values/launch_config.hpp"

namespace bascule::python {
namespace {

PyTypeObject* launcher_type = nullptr;

LaunchState& state_of(PyObject* self) noexcept { return held_by<LaunchState>(self); }

PyObject* call_launcher(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    return guarded([&] {
        launch(state_of(self), {arguments, PyVectorcall_NARGS(flags), keywords});
        return py::none();
    });
}

/// The keywords of `options`.
constexpr const char* option_names[] = {"peer", "sync", "streams"};

std::string no_option(const std::string& name) {
    if (is_launch_attribute(name)) {
        return fmt::format(
            "`{0}` belongs to the launch's configuration: kernel[bascule.LaunchConfig(grid, block, "
            "{0}=...)]. options takes: peer, sync, streams.",
            name);
    }
    return fmt::format("there is no option '{}' of a launch; there are: peer, sync, streams.",
                       shortened(name));
}

PyObject* options(PyObject* self, PyObject* arguments, PyObject* keywords) {
    return guarded([&] {
        if (PyTuple_GET_SIZE(arguments) != 0) {
            reject(ErrorKind::type,
                   "options takes its options by name: options(peer=True), options(sync=False), "
                   "options(streams={{\"x\": stream}}).");
        }
        const py::dict given = keywords == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(keywords);
        py::object values[3] = {py::none(), py::none(), py::none()};
        for (const auto& [name, value] : given) {
            const std::string key = py::str(name);
            const auto* found = std::find(std::begin(option_names), std::end(option_names), key);
            if (found == std::end(option_names)) {
                throw ArgumentError(ErrorKind::type, no_option(key), {.field = key});
            }
            values[found - std::begin(option_names)] = py::reinterpret_borrow<py::object>(value);
        }
        const LaunchState& state = state_of(self);
        LaunchPlan plan = state.plan;
        plan.stream_object = state.stream_object();
        plan.options = to_options(plan.options, values[0], values[1], values[2]);
        return make_launcher(state.kernel, std::move(plan));
    });
}

PyObject* explain(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] { return explain_launch(state_of(self), {arguments, positional, keywords}); });
}

PyObject* bind(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] {
        return make_bound_launch(py::reinterpret_borrow<py::object>(self), state_of(self),
                                 {arguments, positional, keywords});
    });
}

std::string geometry(const LaunchState& state) {
    const LaunchPlan& plan = state.plan;
    if (!state.launches) return " over nothing";
    const ResolvedLaunch* resolved = state.resolved();
    const bool chosen = resolved != nullptr && resolved->target;
    if (!plan.work.empty() && !chosen) {
        return fmt::format(".forall({}) {} bytes shared", fmt::join(plan.work, ", "), plan.shared_bytes);
    }
    const LaunchConfig& config = chosen ? resolved->target->config() : plan.config;
    return fmt::format("[{}, {}] {} bytes shared", bascule::to_string(config.grid),
                       bascule::to_string(config.block), config.shared_bytes.value);
}

PyObject* repr_of_launcher(PyObject* self) {
    return guarded([&] {
        const LaunchState& state = state_of(self);
        return py::str(fmt::format("<bascule.Launcher {}{}>", state.kernel.name(), geometry(state)));
    });
}

py::dict facts_of_launcher(const py::object& self) {
    if (Py_TYPE(self.ptr()) != launcher_type) throw py::type_error("a bascule.Launcher is needed");
    const LaunchState& state = state_of(self.ptr());
    const ResolvedLaunch* resolved = state.resolved();
    const bool chosen = resolved != nullptr && resolved->target;
    return launch_facts(state, resolved != nullptr ? resolved->function : state.kernel,
                        chosen ? &resolved->target->config() : nullptr);
}

constexpr const char* launcher_documentation =
    "A kernel with its launch configuration: calling it launches.\n\n"
    "Made by `kernel[grid, block]`, `kernel[grid, block, stream, shared_bytes]` and `kernel.forall(n)`. The "
    "call checks every\n"
    "argument against the kernel's parameters first, then orders the launch with the arrays' streams; it "
    "does not wait for the\n"
    "kernel. Any thread may call it.";

constexpr const char* bind_documentation =
    "bind($self, /, *arguments, **keywords)\n--\n\n"
    "Check the arguments once, launch many times: returns an object whose call launches.\n\n"
    "The arrays, their addresses and their streams are read now; each launch is ordered with those streams. "
    "The arrays are kept\nalive. `rebind` reads again.";

constexpr const char* options_documentation =
    "options($self, /, *, peer=None, sync=None, streams=None)\n--\n\n"
    "The same launcher with other rules of order; options that are omitted stay as they are.\n\n"
    "peer : True takes arrays of other devices: their memory is opened to kernels on the launch's device, "
    "and their streams are\nordered with the launch as others are. Off, they are refused.\n"
    "sync : False ignores the streams of all arrays for this launch; they are checked, and the order is "
    "yours.\n"
    "streams : a dict from parameters to streams, for arrays that name none: {\"x\": stream}.\n";

constexpr const char* explain_documentation =
    "explain($self, /, *arguments, **keywords)\n--\n\n"
    "What calling the launcher with these arguments would do: where, with which grid, and which streams "
    "would wait for which,\nand why. Nothing is enqueued. Returns a bascule.Explanation, whose text says it "
    "all.";

PyMethodDef launcher_methods[] = {
    {"options", as_method(&options), METH_VARARGS | METH_KEYWORDS, options_documentation},
    {"explain", as_method(&explain), METH_FASTCALL | METH_KEYWORDS, explain_documentation},
    {"bind", as_method(&bind), METH_FASTCALL | METH_KEYWORDS, bind_documentation},
    {nullptr, nullptr, 0, nullptr},
};

py::object make_launcher_at_site(const Kernel& kernel, LaunchPlan plan, const LauncherKey& key = {}) {
    return make_callable(launcher_type, &call_launcher,
                         std::make_unique<LaunchState>(kernel, std::move(plan), key));
}

// --- kernel[grid, block, stream, shared_bytes]

[[noreturn]] void fail_brackets(const py::object& key) {
    reject(ErrorKind::type,
           "the brackets take the grid in blocks and the block in threads: kernel[grid, block], kernel[grid, "
           "block, stream] or kernel[grid, block, stream, shared_bytes], such as kernel[(4, 4), 256]; got "
           "{}.{}",
           PyCallable_Check(key.ptr()) != 0 ? "a function" : shortened(std::string(py::repr(key))),
           PyCallable_Check(key.ptr()) != 0 ? " For a grid that depends on the arguments use "
                                              "kernel.forall(n), or a launch rule: @bascule.kernel."
                                            : "");
}

/// `kernel[(a, b)]` is Triton's form, where the compiler chooses the block size. Here it would be grid and block.
[[noreturn]] void fail_one_tuple(const py::tuple& parts) {
    const std::string tuple = py::repr(parts);
    std::vector<std::string> entries;
    for (const py::handle part : parts) entries.emplace_back(py::repr(part));
    const bool is_grid = parts.size() <= 3 && std::ranges::all_of(parts, [](const py::handle& part) {
                             return PyIndex_Check(part.ptr()) != 0;
                         });
    reject(ErrorKind::type,
           "kernel[{0}] has one tuple in the brackets, which Python passes as if the parentheses were not "
           "there. Write {1}kernel[{2}] for a grid of {3} and a block of {4}.",
           tuple, is_grid ? fmt::format("kernel[{0}, block] for a grid of {0} blocks, or ", tuple) : "",
           fmt::join(entries, ", "), entries[0], entries[1]);
}

/// Refuses a stream in the place of the grid or the block.
void refuse_misplaced_stream(const py::tuple& parts) {
    for (std::size_t i = 0; i < 2; ++i) {
        if (!py::isinstance<StreamObject>(parts[i])) continue;
        reject_field(
            ErrorKind::type, "stream",
            "the {} entry in the brackets is the {}, got a stream, which is the third: kernel[grid, block, "
            "stream].",
            i == 0 ? "first" : "second", i == 0 ? "grid" : "block");
    }
}

/// Except for the default streams, no stream has a handle below this: handles are addresses on the heap.
constexpr long long lowest_handle = 1 << 18;

/// Refuses a number in the place of the stream that is too small for a handle, and probably means shared bytes.
void require_handle(const py::tuple& parts) {
    const py::object stream = parts[2];
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(stream.ptr(), &overflow);
    if (overflow != 0 || value <= 2 || value >= lowest_handle) return;
    reject_field(ErrorKind::value, "stream",
                 "the third entry in the brackets is the stream, and {0} is not a stream's handle. Shared "
                 "bytes are the fourth: kernel[{1}, {2}, None, {0}].",
                 value, std::string(py::repr(parts[0])), std::string(py::repr(parts[1])));
}

}  // namespace

py::object make_launcher(const Kernel& kernel, LaunchPlan plan) {
    plan.site = current_site();
    return make_launcher_at_site(kernel, std::move(plan));
}

py::object make_known_launcher(const KernelObject& self, LaunchPlan plan, const LauncherKey& key) {
    const LauncherKey known = lend_stream(self, plan, key);
    py::object made = make_launcher_at_site(self.kernel, std::move(plan), known);
    if (known.place != 0) remember_launcher(self, made);
    return made;
}

py::object launcher_of(const KernelObject& self, const py::object& key) {
    const Kernel& kernel = self.kernel;
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
    refuse_misplaced_stream(parts);
    if (PyLong_CheckExact(stream.ptr())) require_handle(parts);
    const py::dict attributes = parts.size() > 3 ? py::dict("shared_bytes"_a = parts[3]) : py::dict();
    const LaunchConfig config = to_config("__getitem__", parts[0], parts[1], attributes);
    const SubscriptSite place = current_subscript();
    if (place.one_tuple) fail_one_tuple(parts);
    LaunchPlan plan = to_plan(config, stream);
    plan.site = place.call.site;
    LauncherKey known;
    if (read_subscript(key.ptr(), known)) known.place = place.call.place;
    return make_known_launcher(self, std::move(plan), known);
}

const LaunchState& state_of_launcher(py::handle launcher) {
    if (!PyObject_TypeCheck(launcher.ptr(), launcher_type)) throw py::type_error("not a bascule.Launcher");
    return state_of(launcher.ptr());
}

void register_launcher(py::module_& module) {
    launcher_type = register_callable<LaunchState>(module, "bascule.Launcher", launcher_documentation,
                                                   launcher_methods, &repr_of_launcher);
    module.def("_launcher_facts", &facts_of_launcher);
}

}  // namespace bascule::python
