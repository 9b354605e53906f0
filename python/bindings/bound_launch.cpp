// A launch whose arguments were read and checked before: its call is ordering and cuLaunchKernelEx, nothing
// else.
#include "bound_launch.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <bascule/runtime/capture.hpp>
#include <bascule/runtime/captured_owners.hpp>
#include <bascule/runtime/ordering.hpp>

#include "callable_object.hpp"
#include "current_stream.hpp"
#include "debug_object.hpp"
#include "device_object.hpp"
#include "gil.hpp"
#include "owners.hpp"
#include "without_gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// A stream that a binding was launched on, and the object that owns it where that was the current one.
struct UsedStream {
    StreamRef stream;
    py::object object;
};

/// What one binding fixed. Launches share it, with each other and with a rebind that replaces it.
struct Binding {
    Kernel function;
    LaunchConfig config;
    Device device;  // where the launches go: where the arrays are
    OwnerList owners;
    ArgumentPack pack;
    GilMutex mutex{};
    std::vector<UsedStream> streams{};  // guarded by `mutex`

    Binding(Kernel the_function, const LaunchConfig& the_config, Device the_device)
        : function(std::move(the_function)),
          config(the_config),
          device(the_device),
          pack(function.loaded(device).image->signature) {}

    /// What a launch may still use is kept until it is done.
    ~Binding() {
        for (std::size_t i = 1; i < streams.size(); ++i) {
            OwnerList more;
            copy_owners(more);
            keep_until_done(streams[i].stream, more.hand_over());
        }
        if (!streams.empty()) keep_until_done(streams[0].stream, owners.hand_over());
    }

    void copy_owners(OwnerList& to) const {
        for (const Owner& owner : owners.current())
            to.keep(static_cast<PyObject*>(owner.object), owner.bytes);
    }
};

/// What was bound last.
struct Arguments {
    py::object positional;  // tuple and dict, as `rebind()` reads them again
    py::object named;
    std::shared_ptr<Binding> binding;
};

class Bound {
  public:
    Bound(const Kernel& the_kernel, const LaunchPlan& the_plan, Arguments arguments)
        : kernel(the_kernel), plan(the_plan), arguments_(std::move(arguments)) {}

    const Kernel kernel;
    const LaunchPlan plan;

    Arguments arguments() const {
        const std::lock_guard lock(mutex_);
        return arguments_;
    }
    std::shared_ptr<Binding> binding() const {
        const std::lock_guard lock(mutex_);
        return arguments_.binding;
    }
    /// What was bound before goes when the lock is given back: that may run any code.
    void replace(Arguments with) {
        const std::lock_guard lock(mutex_);
        std::swap(arguments_, with);
    }

  private:
    mutable GilMutex mutex_;
    Arguments arguments_;
};

PyTypeObject* bound_type = nullptr;

LaunchConfig config_of(const LaunchPlan& plan, const Kernel& function, Device device) {
    if (plan.work.empty()) return plan.config;
    return plan.empty() ? LaunchConfig{} : function.configuration_for(device, plan.work, plan.shared_bytes);
}

std::shared_ptr<Binding> make_binding(const Kernel& kernel, const LaunchPlan& plan,
                                      const CallArguments& arguments) {
    const auto [device, stream] = beginning_of(plan);
    const LaunchOptions* options = plan.options.get();
    Kernel function = settle(kernel, device);
    std::shared_ptr<Binding> binding;
    if (function.is_function()) {
        load(function, device);
        binding = std::make_shared<Binding>(function, config_of(plan, function, device), device);
        prepare_pack(binding->pack, options);
        ArgumentReader reader(device, binding->owners, stream, options);
        read_arguments(binding->pack, reader, arguments);
        if (!(reader.device() == device)) {
            load(function, reader.device());
            binding->device = reader.device();
            binding->config = config_of(plan, function, reader.device());
        }
    } else {
        OwnerList owners;
        ArgumentReader reader(device, owners, stream, options);
        Slots<ArgumentValue> values(arguments.count());
        read_arguments(function, reader, arguments, values.span());
        const Device home = reader.device();
        function = choose(function, values.span(), home);
        load(function, home);
        binding = std::make_shared<Binding>(function, config_of(plan, function, home), home);
        prepare_pack(binding->pack, options);
        set_all(binding->pack, values.span());
        for (const Owner& owner : owners.current())
            binding->owners.keep(static_cast<PyObject*>(owner.object), owner.bytes);
    }
    compare_structures(binding->function, binding->pack, binding->device);
    add_named_streams(binding->pack, options, binding->device);
    return binding;
}

CallArguments call_arguments(const py::tuple& arguments, const py::object& keywords,
                             std::vector<PyObject*>& objects, py::object& names) {
    for (py::handle argument : arguments) objects.push_back(argument.ptr());
    if (keywords.is_none()) return {objects.data(), static_cast<Py_ssize_t>(objects.size()), nullptr};
    py::list list;
    for (auto [name, value] : keywords.cast<py::dict>()) {
        list.append(name);
        objects.push_back(value.ptr());
    }
    names = py::tuple(list);
    return {objects.data(), static_cast<Py_ssize_t>(arguments.size()), names.ptr()};
}

void launch_on(StreamRef stream, const LaunchPlan& plan, Binding& binding, std::span<const Owner> owners) {
    const LaunchSite site = launch_site(plan.site);
    if (launches_block(binding.device)) {
        const GilReleased released;
        binding.function.launch(stream, binding.config, binding.pack, owners, site);
    } else {
        binding.function.launch(stream, binding.config, binding.pack, owners, site);
    }
}

void note_stream(Binding& binding, StreamRef stream) {
    const auto known = [&] {
        return std::any_of(binding.streams.begin(), binding.streams.end(),
                           [&](const UsedStream& used) { return used.stream == stream; });
    };
    {
        const std::lock_guard lock(binding.mutex);
        if (known()) [[likely]]
            return;
    }
    UsedStream used{stream, current_stream_object(binding.device)};
    const std::lock_guard lock(binding.mutex);
    if (!known()) binding.streams.push_back(std::move(used));
}

/// The arrays are kept for all launches on a stream at once, when the binding goes. What handle 2 means is
/// another stream in the thread where that happens, and a graph that is being captured has owners of its own,
/// ours or, once others were seen to capture, theirs: there each launch keeps them.
void launch(Bound& bound) {
    if (bound.plan.empty()) return;
    const std::shared_ptr<Binding> binding = bound.binding();
    const StreamRef stream = choose_stream(bound.plan.stream, current_for(bound.plan, binding->device),
                                           binding->pack.common_stream(), binding->device);
    if (stream.handle() == 2 || NotedCapture::any() || OthersCapture::seen()) [[unlikely]] {
        OwnerList owners;
        binding->copy_owners(owners);
        launch_on(stream, bound.plan, *binding, owners.hand_over());
        return;
    }
    note_stream(*binding, stream);
    launch_on(stream, bound.plan, *binding, {});
}

PyObject* call_bound(PyObject* self, PyObject* const*, std::size_t flags, PyObject* keywords) {
    if (PyVectorcall_NARGS(flags) != 0 || keywords != nullptr) {
        PyErr_SetString(PyExc_TypeError,
                        "a bound launch takes no arguments: they were bound; rebind(...) binds others");
        return nullptr;
    }
    return guarded([&] {
        launch(held_by<Bound>(self));
        return py::none();
    });
}

/// Nothing changes when an argument is refused.
void bind_again(Bound& bound, const py::tuple& arguments, const py::object& keywords) {
    std::vector<PyObject*> objects;
    py::object names;
    const CallArguments call = call_arguments(arguments, keywords, objects, names);
    bound.replace({arguments, keywords, make_binding(bound.kernel, bound.plan, call)});
}

PyObject* rebind(PyObject* self, PyObject* arguments, PyObject* keywords) {
    return guarded([&] {
        Bound& bound = held_by<Bound>(self);
        if (PyTuple_GET_SIZE(arguments) == 0 && keywords == nullptr) {
            const Arguments again = bound.arguments();
            bind_again(bound, py::tuple(again.positional), again.named);
        } else {
            bind_again(
                bound, py::reinterpret_borrow<py::tuple>(arguments),
                keywords == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(keywords));
        }
        return py::none();
    });
}

PyObject* repr_of_bound(PyObject* self) {
    return guarded([&] {
        const std::shared_ptr<const Binding> binding = held_by<Bound>(self).binding();
        return py::str(fmt::format("<bascule.BoundLaunch {}[{}, {}]>", binding->function.expression(),
                                   bascule::to_string(binding->config.grid),
                                   bascule::to_string(binding->config.block)));
    });
}

constexpr const char* bound_documentation =
    "A kernel with its launch configuration and its arguments: calling it launches.\n\n"
    "Made by `kernel[grid, block].bind(arguments)`. The arguments were checked then; each call waits for the "
    "streams "
    "that the arrays\nnamed then and makes them wait, on the stream that is current at the call where none "
    "was given. It keeps the arrays alive. Any thread may call it.";

constexpr const char* rebind_documentation =
    "rebind($self, /, *arguments, **keywords)\n--\n\n"
    "Read and check the same arguments again, or others in their place. When one is refused the old ones "
    "stay bound.";

PyMethodDef bound_methods[] = {
    {"rebind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&rebind)),
     METH_VARARGS | METH_KEYWORDS, rebind_documentation},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

py::object make_bound_launch(const Kernel& kernel, const LaunchPlan& plan, const CallArguments& arguments) {
    py::list positional;
    for (Py_ssize_t i = 0; i < arguments.positional; ++i) positional.append(py::handle(arguments.objects[i]));
    py::object named = py::none();
    if (arguments.keywords != nullptr) {
        py::dict keywords;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.keywords); ++i) {
            keywords[py::handle(PyTuple_GET_ITEM(arguments.keywords, i))] =
                py::handle(arguments.objects[arguments.positional + i]);
        }
        named = keywords;
    }
    auto bound = std::make_unique<Bound>(
        kernel, plan, Arguments{py::tuple(positional), named, make_binding(kernel, plan, arguments)});
    return make_callable(bound_type, &call_bound, std::move(bound));
}

void register_bound_launch(py::module_& module) {
    bound_type = register_callable<Bound>(module, "bascule.BoundLaunch", bound_documentation, bound_methods, &repr_of_bound);
}

}  // namespace bascule::python
