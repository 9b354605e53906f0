// The launch path: a heap type with vectorcall, because a pybind11 call costs more than the rest of a launch.
#include "launcher.hpp"

#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/argument.hpp>
#include <bascule/runtime/ordering.hpp>

#include "bound_launch.hpp"
#include "call_arguments.hpp"
#include "callable_object.hpp"
#include "debug_object.hpp"
#include "device_object.hpp"
#include "gil.hpp"
#include "owners.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// What a Launcher holds.
struct Launch {
    Kernel kernel;
    LaunchPlan plan;
    std::optional<Device> device;          // once the first call has come
    const LoadedKernel* loaded = nullptr;  // of a kernel that is one function
    std::optional<LaunchConfig> config;    // of that function, where the plan says how much work there is
};

PyTypeObject* launcher_type = nullptr;

void enqueue(const Kernel& kernel, const LaunchPlan& plan, const LaunchConfig& config, ArgumentPack& pack,
             OwnerList& owners, Device device) {
    const StreamRef stream = choose_stream(plan.stream, std::nullopt, pack.common_stream(), device);
    const LaunchSite site = launch_site(plan.site);
    if (launches_block(device)) {
        const GilReleased released;
        kernel.launch(stream, config, pack, owners.hand_over(), site);
    } else {
        kernel.launch(stream, config, pack, owners.hand_over(), site);
    }
}

/// The first call decides on the device, and whether there is anything to choose.
void begin(Launch& launch) {
    const Device device = launch.plan.stream ? launch.plan.stream->device() : current_device();
    Kernel settled = settle(launch.kernel, device);
    if (settled.is_function()) {
        const LoadedKernel& loaded = load(settled, device);
        if (!launch.plan.work.empty() && !launch.plan.empty()) {
            launch.config = settled.configuration_for(device, launch.plan.work, launch.plan.shared_bytes);
        }
        launch.kernel = std::move(settled);
        launch.loaded = &loaded;
    }
    launch.device = device;
}

void run_chosen(const Launch& launch, const CallArguments& arguments) {
    const LaunchPlan& plan = launch.plan;
    OwnerList owners;
    ArgumentReader reader(*launch.device, owners, plan.stream);
    Slots<ArgumentValue> values(arguments.count());
    read_arguments(launch.kernel, reader, arguments, values.span());
    const Device device = reader.device();
    const Kernel function = choose(launch.kernel, values.span(), device);
    const LoadedKernel& loaded = load(function, device);
    ArgumentPack pack(loaded.image->signature);
    set_all(pack, values.span());
    compare_structures(function, pack, device);
    if (plan.empty()) return;
    const LaunchConfig config =
        plan.work.empty() ? plan.config : function.configuration_for(device, plan.work, plan.shared_bytes);
    enqueue(function, plan, config, pack, owners, device);
}

/// The arrays are on another device than the first call's were: the kernel is loaded there too.
void run_elsewhere(const Launch& launch, ArgumentPack& pack, OwnerList& owners, Device device) {
    const LaunchPlan& plan = launch.plan;
    load(launch.kernel, device);
    const LaunchConfig config = plan.work.empty()
                                    ? plan.config
                                    : launch.kernel.configuration_for(device, plan.work, plan.shared_bytes);
    enqueue(launch.kernel, plan, config, pack, owners, device);
}

void run(Launch& launch, const CallArguments& arguments) {
    if (!launch.device) [[unlikely]]
        begin(launch);
    if (launch.loaded == nullptr) {
        run_chosen(launch, arguments);
        return;
    }
    ArgumentPack pack(launch.loaded->image->signature);
    OwnerList owners;
    ArgumentReader reader(*launch.device, owners, launch.plan.stream);
    read_arguments(pack, reader, arguments);
    const Device device = reader.device();
    compare_structures(launch.kernel, pack, device);
    if (launch.plan.empty()) return;
    if (!(device == *launch.device)) [[unlikely]] {
        run_elsewhere(launch, pack, owners, device);
        return;
    }
    enqueue(launch.kernel, launch.plan, launch.config ? *launch.config : launch.plan.config, pack, owners,
            device);
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    return guarded([&] {
        run(held_by<Launch>(self), {arguments, PyVectorcall_NARGS(flags), keywords});
        return py::none();
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
    if (plan.empty()) return " over nothing";
    if (!plan.work.empty() && !launch.config) {
        return fmt::format(".forall({}) {} bytes shared", fmt::join(plan.work, ", "), plan.shared_bytes);
    }
    const LaunchConfig& config = launch.config ? *launch.config : plan.config;
    return fmt::format("[{}, {}] {} bytes shared", bascule::to_string(config.grid),
                       bascule::to_string(config.block), config.shared_bytes);
}

PyObject* repr(PyObject* self) {
    return guarded([&] {
        const Launch& launch = held_by<Launch>(self);
        return py::str(fmt::format("<bascule.Launcher {}{}>", launch.kernel.name(), geometry(launch)));
    });
}

constexpr const char* documentation =
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

PyMethodDef methods[] = {
    {"bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&bind)),
     METH_FASTCALL | METH_KEYWORDS, bind_documentation},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

py::object make_launcher(const Kernel& kernel, LaunchPlan plan) {
    plan.site = current_site();
    auto launch =
        std::make_unique<Launch>(Launch{kernel, std::move(plan), std::nullopt, nullptr, std::nullopt});
    return make_callable(launcher_type, &call, std::move(launch));
}

void register_launcher(py::module_& module) {
    launcher_type = register_callable<Launch>(module, "bascule.Launcher", documentation, methods, &repr);
}

}  // namespace bascule::python
