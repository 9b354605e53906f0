// The launch path: a heap type with vectorcall, because a pybind11 call costs more than the rest of a launch.
#include "launcher.hpp"

#include <array>
#include <memory>
#include <string>
#include <structmember.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/argument.hpp>
#include <bascule/runtime/ordering.hpp>

#include "arguments.hpp"
#include "device_object.hpp"
#include "errors.hpp"
#include "owners.hpp"
#include "toolkit.hpp"

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

struct LauncherObject {
    PyObject_HEAD vectorcallfunc vectorcall;
    Launch* launch;
};

PyTypeObject* launcher_type = nullptr;

/// What a call passes.
struct CallArguments {
    PyObject* const* objects;
    Py_ssize_t positional;
    PyObject* keywords;

    std::size_t count() const noexcept {
        return static_cast<std::size_t>(positional + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)));
    }
};

/// One slot a parameter, on the stack up to 32.
template <class T>
class Slots {
  public:
    explicit Slots(std::size_t count) {
        if (count > inline_.size()) more_.resize(count);
        span_ = more_.empty() ? std::span<T>(inline_.data(), count) : std::span<T>(more_);
    }
    std::span<T> span() noexcept { return span_; }

  private:
    std::array<T, 32> inline_;
    std::vector<T> more_;
    std::span<T> span_;
};

/// One function: each argument is read and checked in one go.
void read_arguments(ArgumentPack& pack, ArgumentReader& reader, const CallArguments& arguments) {
    const Signature& signature = pack.signature();
    if (arguments.keywords == nullptr) {
        ArgumentPack::check_count(signature, arguments.count());
        for (int i = 0; i < static_cast<int>(arguments.positional); ++i) {
            reader.read_into(pack, i, arguments.objects[i]);
        }
        return;
    }
    Slots<PyObject*> slots(signature.parameters.size());
    order_arguments(signature, arguments.objects, arguments.positional, arguments.keywords, slots.span());
    int index = 0;
    for (PyObject* argument : slots.span()) reader.read_into(pack, index++, argument);
}

/// A template or overloads: all arguments are read before it is known which function they go to.
void read_arguments(const Kernel& kernel, ArgumentReader& reader, const CallArguments& arguments,
                    std::span<ArgumentValue> values) {
    const Signature& declared = kernel.declared(arguments.count());
    Slots<PyObject*> slots(values.size());
    order_arguments(declared, arguments.objects, arguments.positional, arguments.keywords, slots.span());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = reader.read(slots.span()[i], static_cast<int>(i), declared.parameters[i]);
    }
}

Kernel choose(const Kernel& kernel, std::span<const ArgumentValue> values, Device device) {
    if (auto known = kernel.known_for_arguments(values)) return *known;
    prepare_toolkit();
    const py::gil_scoped_release release;
    return kernel.for_arguments(values, device);
}

void set_all(ArgumentPack& pack, std::span<const ArgumentValue> values) {
    ArgumentPack::check_count(pack.signature(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) pack.set(static_cast<int>(i), values[i]);
}

/// The compiler may have to be asked: without the GIL.
void compare_structures(const Kernel& kernel, const ArgumentPack& pack, Device device) {
    if (pack.layout_claims().empty()) [[likely]]
        return;
    const py::gil_scoped_release release;
    kernel.check_layouts(pack, device);
}

void enqueue(const Kernel& kernel, const LaunchPlan& plan, const LaunchConfig& config, ArgumentPack& pack,
             OwnerList& owners, Device device) {
    const StreamRef stream = choose_stream(plan.stream, std::nullopt, pack.common_stream(), device);
    if (launches_block(device)) {
        const py::gil_scoped_release release;
        kernel.launch(stream, config, pack, owners.hand_over());
    } else {
        kernel.launch(stream, config, pack, owners.hand_over());
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
    const Device device = *launch.device;
    const LaunchPlan& plan = launch.plan;
    OwnerList owners;
    ArgumentReader reader(device, owners);
    Slots<ArgumentValue> values(arguments.count());
    read_arguments(launch.kernel, reader, arguments, values.span());
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

void run(Launch& launch, const CallArguments& arguments) {
    if (!launch.device) [[unlikely]]
        begin(launch);
    if (launch.loaded == nullptr) {
        run_chosen(launch, arguments);
        return;
    }
    const Device device = *launch.device;
    ArgumentPack pack(launch.loaded->image->signature);
    OwnerList owners;
    ArgumentReader reader(device, owners);
    read_arguments(pack, reader, arguments);
    compare_structures(launch.kernel, pack, device);
    if (launch.plan.empty()) return;
    enqueue(launch.kernel, launch.plan, launch.config ? *launch.config : launch.plan.config, pack, owners,
            device);
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    try {
        run(*reinterpret_cast<LauncherObject*>(self)->launch,
            {arguments, PyVectorcall_NARGS(flags), keywords});
        Py_RETURN_NONE;
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

void deallocate(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<LauncherObject*>(self)->launch;
    type->tp_free(self);
    Py_DECREF(type);
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
    try {
        const Launch& launch = *reinterpret_cast<LauncherObject*>(self)->launch;
        const std::string text =
            fmt::format("<bascule.Launcher {}{}>", launch.kernel.name(), geometry(launch));
        return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

constexpr const char* documentation =
    "A kernel with its launch configuration: calling it launches.\n\n"
    "Made by `kernel[grid, block]`, `kernel[grid, block, stream, shared_bytes]` and `kernel.forall(n)`. The "
    "call checks every\n"
    "argument against the kernel's parameters first, then orders the launch with the arrays' streams; it "
    "does not wait for the\n"
    "kernel. Any thread may call it.";

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(LauncherObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(&repr)},
    {Py_tp_doc, const_cast<char*>(documentation)},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {"bascule.Launcher", static_cast<int>(sizeof(LauncherObject)), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

const LoadedKernel& load(const Kernel& kernel, Device device) {
    if (const LoadedKernel* hit = kernel.existing(device)) return *hit;
    prepare_toolkit();
    const py::gil_scoped_release release;
    return kernel.loaded(device);
}

Kernel settle(const Kernel& kernel, Device device) {
    if (kernel.is_function()) return kernel;
    prepare_toolkit();
    const py::gil_scoped_release release;
    return kernel.settled(device);
}

Kernel check_arguments(const Kernel& kernel, std::span<PyObject* const> objects, PyObject* keyword_names) {
    const Device device = current_device();
    const Py_ssize_t named = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
    const CallArguments arguments{objects.data(), static_cast<Py_ssize_t>(objects.size()) - named,
                                  keyword_names};
    OwnerList owners;
    ArgumentReader reader(device, owners);
    Kernel function = settle(kernel, device);
    if (function.is_function()) {
        ArgumentPack pack(load(function, device).image->signature);
        read_arguments(pack, reader, arguments);
        compare_structures(function, pack, device);
        return function;
    }
    Slots<ArgumentValue> values(arguments.count());
    read_arguments(kernel, reader, arguments, values.span());
    function = choose(kernel, values.span(), device);
    ArgumentPack pack(load(function, device).image->signature);
    set_all(pack, values.span());
    compare_structures(function, pack, device);
    return function;
}

py::object make_launcher(const Kernel& kernel, LaunchPlan plan) {
    auto launch =
        std::make_unique<Launch>(Launch{kernel, std::move(plan), std::nullopt, nullptr, std::nullopt});
    auto* object = reinterpret_cast<LauncherObject*>(launcher_type->tp_alloc(launcher_type, 0));
    if (object == nullptr) throw py::error_already_set();
    object->vectorcall = &call;
    object->launch = launch.release();
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

void register_launcher(py::module_& module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (type == nullptr) throw py::error_already_set();
    launcher_type = reinterpret_cast<PyTypeObject*>(type);
    module.attr("Launcher") = py::reinterpret_steal<py::object>(type);
}

}  // namespace bascule::python
