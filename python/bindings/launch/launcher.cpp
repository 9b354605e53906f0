// The launch path: a heap type with vectorcall, because a pybind11 call costs more than the rest of a launch.
#include "launch/launcher.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "context/current_stream.hpp"
#include "context/debug_object.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "launch/bound_launch.hpp"
#include "launch/call_arguments.hpp"
#include "launch/explanation.hpp"
#include "launch/owners.hpp"
#include "support/callable_object.hpp"
#include "support/gil.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// What the first call decides.
struct Begun {
    Device device;
    Kernel kernel;                         // the one function, where there is nothing to choose
    const LoadedKernel* loaded = nullptr;  // of that function
    std::optional<LaunchConfig> config{};  // of that function, where the plan says how much work there is
};

/// What a Launcher holds. Any number of threads may make its first call; one of them decides for all.
class Launch {
  public:
    Launch(const Kernel& the_kernel, LaunchPlan the_plan) : kernel(the_kernel), plan(std::move(the_plan)) {}

    const Kernel kernel;
    const LaunchPlan plan;

    /// Null before the first call.
    const Begun* begun() const noexcept {
        return is_begun_.load(std::memory_order_acquire) ? &*begun_ : nullptr;
    }
    const Begun& decide(Begun decided) {
        const std::lock_guard lock(mutex_);
        if (!begun_) begun_.emplace(std::move(decided));
        is_begun_.store(true, std::memory_order_release);
        return *begun_;
    }

  private:
    std::atomic<bool> is_begun_{false};
    GilMutex mutex_;
    std::optional<Begun> begun_;
};

PyTypeObject* launcher_type = nullptr;

void enqueue(const Kernel& kernel, const LaunchPlan& plan, const LaunchConfig& config, ArgumentPack& pack,
             OwnerList& owners, Device device) {
    if (plan.options != nullptr) [[unlikely]]
        add_named_streams(pack, plan.options.get(), device);
    const StreamRef stream =
        choose_stream(plan.stream, current_for(plan, device), pack.common_stream(), device);
    const LaunchSite site = launch_site(plan.site);
    if (launches_block(device)) {
        const GilReleased released;
        kernel.launch(stream, config, pack, owners.hand_over(), site);
    } else {
        kernel.launch(stream, config, pack, owners.hand_over(), site);
    }
}

/// The first call decides on the device, and whether there is anything to choose.
const Begun& begin(Launch& launch) {
    Begun begun{beginning_of(launch.plan).device, launch.kernel};
    begun.kernel = settle(launch.kernel, begun.device);
    if (begun.kernel.is_function()) {
        begun.loaded = &load(begun.kernel, begun.device, launch.plan.stream);
        if (!launch.plan.work.empty() && !launch.plan.empty()) {
            begun.config =
                begun.kernel.configuration_for(begun.device, launch.plan.work, launch.plan.shared_bytes);
        }
    }
    return launch.decide(std::move(begun));
}

/// The same for the next call, which asks for nothing while nobody has ever entered a stream or device.
Beginning beginning_of(const LaunchPlan& plan, const Begun& begun) {
    if (plan.stream || !anything_entered()) [[likely]]
        return {begun.device, plan.stream};
    return beginning_of(plan);
}

void run_chosen(const Launch& launch, const Begun& begun, const CallArguments& arguments) {
    const LaunchPlan& plan = launch.plan;
    OwnerList owners;
    const Beginning from = beginning_of(plan, begun);
    ArgumentReader reader(from.device, owners, from.stream, plan.options.get());
    Slots<ArgumentValue> values(arguments.count());
    read_arguments(launch.kernel, reader, arguments, values.span());
    const Device device = reader.device();
    const Kernel function = choose(launch.kernel, values.span(), device);
    const LoadedKernel& loaded = load(function, device, plan.stream);
    ArgumentPack pack(loaded.image->signature);
    prepare_pack(pack, plan.options.get());
    set_all(pack, values.span());
    compare_structures(function, pack, device);
    if (plan.empty()) return;
    const LaunchConfig config =
        plan.work.empty() ? plan.config : function.configuration_for(device, plan.work, plan.shared_bytes);
    enqueue(function, plan, config, pack, owners, device);
}

/// The arrays are on another device than the first call's were: the kernel is loaded there too.
void run_elsewhere(const Kernel& kernel, const LaunchPlan& plan, ArgumentPack& pack, OwnerList& owners,
                   Device device) {
    load(kernel, device, plan.stream);
    const LaunchConfig config =
        plan.work.empty() ? plan.config : kernel.configuration_for(device, plan.work, plan.shared_bytes);
    enqueue(kernel, plan, config, pack, owners, device);
}

void run_launch(Launch& launch, const CallArguments& arguments) {
    const Begun* known = launch.begun();
    const Begun& begun = known != nullptr ? *known : begin(launch);
    if (begun.loaded == nullptr) {
        run_chosen(launch, begun, arguments);
        return;
    }
    const LaunchPlan& plan = launch.plan;
    ArgumentPack pack(begun.loaded->image->signature);
    prepare_pack(pack, plan.options.get());
    OwnerList owners;
    const Beginning from = beginning_of(plan, begun);
    ArgumentReader reader(from.device, owners, from.stream, plan.options.get());
    read_arguments(pack, reader, arguments);
    const Device device = reader.device();
    compare_structures(begun.kernel, pack, device);
    if (plan.empty()) return;
    if (!(device == begun.device)) [[unlikely]] {
        run_elsewhere(begun.kernel, plan, pack, owners, device);
        return;
    }
    enqueue(begun.kernel, plan, begun.config ? *begun.config : plan.config, pack, owners, device);
}

PyObject* call_launcher(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    return guarded([&] {
        run_launch(held_by<Launch>(self), {arguments, PyVectorcall_NARGS(flags), keywords});
        return py::none();
    });
}

/// What `options` and nothing else may be told.
constexpr const char* option_names[] = {"peer", "sync", "streams"};

std::string no_option(const std::string& name) {
    constexpr std::string_view configured[] = {"shared_bytes", "cooperative", "cluster",
                                               "programmatic", "priority",    "shared_carveout"};
    if (std::find(std::begin(configured), std::end(configured), name) != std::end(configured)) {
        return fmt::format(
            "`{0}` belongs to the launch's configuration: "
            "kernel[bascule.LaunchConfig(grid, block, {0}=...)]. options takes: peer, sync, streams.",
            name);
    }
    return fmt::format("there is no option '{}' of a launch; there are: peer, sync, streams.",
                       shortened(name));
}

PyObject* options(PyObject* self, PyObject* arguments, PyObject* keywords) {
    return guarded([&] {
        if (PyTuple_GET_SIZE(arguments) != 0) {
            throw ArgumentError(ArgumentError::Kind::type,
                                "options takes its options by name: options(peer=True), options(sync=False), "
                                "options(streams={\"x\": stream}).");
        }
        const py::dict given = keywords == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(keywords);
        py::object values[3] = {py::none(), py::none(), py::none()};
        for (const auto& [name, value] : given) {
            const std::string key = py::str(name);
            const auto* found = std::find(std::begin(option_names), std::end(option_names), key);
            if (found == std::end(option_names)) {
                throw ArgumentError(ArgumentError::Kind::type, no_option(key), {.field = key});
            }
            values[found - std::begin(option_names)] = py::reinterpret_borrow<py::object>(value);
        }
        const Launch& launch = held_by<Launch>(self);
        LaunchPlan plan = launch.plan;
        plan.options = to_options(plan.options, values[0], values[1], values[2]);
        return make_launcher(launch.kernel, std::move(plan));
    });
}

PyObject* explain(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] {
        const Launch& launch = held_by<Launch>(self);
        return explain_launch(launch.kernel, launch.plan, {arguments, positional, keywords});
    });
}

PyObject* bind(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] {
        const Launch& launch = held_by<Launch>(self);
        return make_bound_launch(launch.kernel, launch.plan, {arguments, positional, keywords});
    });
}

std::string geometry(const Launch& launch) {
    const LaunchPlan& plan = launch.plan;
    const Begun* begun = launch.begun();
    const bool chosen = begun != nullptr && begun->config;
    if (plan.empty()) return " over nothing";
    if (!plan.work.empty() && !chosen) {
        return fmt::format(".forall({}) {} bytes shared", fmt::join(plan.work, ", "), plan.shared_bytes);
    }
    const LaunchConfig& config = chosen ? *begun->config : plan.config;
    return fmt::format("[{}, {}] {} bytes shared", bascule::to_string(config.grid),
                       bascule::to_string(config.block), config.shared_bytes);
}

PyObject* repr_of_launcher(PyObject* self) {
    return guarded([&] {
        const Launch& launch = held_by<Launch>(self);
        return py::str(fmt::format("<bascule.Launcher {}{}>", launch.kernel.name(), geometry(launch)));
    });
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
    "The "
    "arrays are kept\nalive. `rebind` reads again.";

constexpr const char* options_documentation =
    "options($self, /, *, peer=None, sync=None, streams=None)\n--\n\n"
    "The same launcher with other rules of order; what is left away stays as it is.\n\n"
    "peer : True takes arrays of other devices: their memory is opened to kernels on the launch's device, "
    "and "
    "their streams are\nordered with the launch as others are. Off, they are refused.\n"
    "sync : False ignores the streams of all arrays for this launch; they are checked, and the order is "
    "yours.\n"
    "streams : a dict from parameters to streams, for arrays that name none: {\"x\": stream}.\n";

constexpr const char* explain_documentation =
    "explain($self, /, *arguments, **keywords)\n--\n\n"
    "What calling the launcher with these arguments would do: where, with which grid, and which streams "
    "would "
    "wait for which,\nand why. Nothing is enqueued. Returns a bascule.Explanation, whose text says it all.";

PyMethodDef launcher_methods[] = {
    {"options", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&options)),
     METH_VARARGS | METH_KEYWORDS, options_documentation},
    {"explain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&explain)),
     METH_FASTCALL | METH_KEYWORDS, explain_documentation},
    {"bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&bind)),
     METH_FASTCALL | METH_KEYWORDS, bind_documentation},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Beginning beginning_of(const LaunchPlan& plan) {
    if (plan.stream) return {plan.stream->device(), plan.stream};
    if (anything_entered()) [[unlikely]] {
        if (const std::optional<StreamRef> entered = innermost_stream()) return {entered->device(), entered};
    }
    return {current_device(), std::nullopt};
}

std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device) {
    if (!anything_entered() || plan.stream) [[likely]]
        return std::nullopt;
    const std::optional<StreamRef> current = current_stream(device);
    if (current) require_device(*current, device, "launch");
    return current;
}

py::object make_launcher(const Kernel& kernel, LaunchPlan plan) {
    plan.site = current_site();
    return make_callable(launcher_type, &call_launcher, std::make_unique<Launch>(kernel, std::move(plan)));
}

void register_launcher(py::module_& module) {
    launcher_type = register_callable<Launch>(module, "bascule.Launcher", launcher_documentation,
                                              launcher_methods, &repr_of_launcher);
}

}  // namespace bascule::python
