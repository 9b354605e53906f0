// The launch path: a heap type with vectorcall, because a pybind11 call costs more than the rest of a launch.
#include "launcher.hpp"

#include <array>
#include <memory>
#include <string>
#include <structmember.h>
#include <vector>

#include <fmt/format.h>

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
    const LoadedKernel* loaded = nullptr;  // for `device`, once it was loaded
    std::optional<Device> device;
};

struct LauncherObject {
    PyObject_HEAD vectorcallfunc vectorcall;
    Launch* launch;
};

PyTypeObject* launcher_type = nullptr;

/// One slot a parameter, on the stack up to 32.
class Slots {
  public:
    explicit Slots(std::size_t count) {
        if (count > inline_.size()) more_.resize(count);
        span_ = more_.empty() ? std::span<PyObject*>(inline_.data(), count) : std::span<PyObject*>(more_);
    }
    std::span<PyObject*> span() noexcept { return span_; }

  private:
    std::array<PyObject*, 32> inline_;
    std::vector<PyObject*> more_;
    std::span<PyObject*> span_;
};

void read_arguments(ArgumentPack& pack, Device device, OwnerList& owners, PyObject* const* arguments,
                    Py_ssize_t positional, PyObject* keywords) {
    const Signature& signature = pack.signature();
    ArgumentReader reader(device, owners);
    if (keywords == nullptr) {
        ArgumentPack::check_count(signature, static_cast<std::size_t>(positional));
        for (int i = 0; i < static_cast<int>(positional); ++i) reader.read_into(pack, i, arguments[i]);
        return;
    }
    Slots slots(signature.parameters.size());
    order_arguments(signature, arguments, positional, keywords, slots.span());
    int index = 0;
    for (PyObject* argument : slots.span()) reader.read_into(pack, index++, argument);
}

void find_kernel(Launch& launch) {
    launch.device = launch.plan.stream ? launch.plan.stream->device() : current_device();
    launch.loaded = &load(launch.kernel, *launch.device);
}

void run(Launch& launch, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    if (launch.loaded == nullptr) find_kernel(launch);
    const Device device = *launch.device;

    ArgumentPack pack(launch.loaded->image->signature);
    OwnerList owners;
    read_arguments(pack, device, owners, arguments, positional, keywords);
    if (launch.plan.empty) return;

    const StreamRef stream = choose_stream(launch.plan.stream, std::nullopt, pack.common_stream(), device);
    if (launches_block(device)) {
        const py::gil_scoped_release release;
        launch.kernel.launch(stream, launch.plan.config, pack, owners.hand_over());
    } else {
        launch.kernel.launch(stream, launch.plan.config, pack, owners.hand_over());
    }
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    try {
        run(*reinterpret_cast<LauncherObject*>(self)->launch, arguments, PyVectorcall_NARGS(flags), keywords);
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

PyObject* repr(PyObject* self) {
    try {
        const Launch& launch = *reinterpret_cast<LauncherObject*>(self)->launch;
        const LaunchConfig& config = launch.plan.config;
        const std::string text = launch.plan.empty
                                     ? fmt::format("<bascule.Launcher {} over nothing>", launch.kernel.name())
                                     : fmt::format("<bascule.Launcher {}[{}, {}] {} bytes shared>",
                                                   launch.kernel.name(), bascule::to_string(config.grid),
                                                   bascule::to_string(config.block), config.shared_bytes);
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
    prepare_toolkit();
    const py::gil_scoped_release release;
    return kernel.loaded(device);
}

void check_arguments(const Kernel& kernel, std::span<PyObject* const> positional, PyObject* keyword_names) {
    const Device device = current_device();
    ArgumentPack pack(load(kernel, device).image->signature);
    OwnerList owners;
    const Py_ssize_t named = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
    read_arguments(pack, device, owners, positional.data(),
                   static_cast<Py_ssize_t>(positional.size()) - named, keyword_names);
}

py::object make_launcher(const Kernel& kernel, LaunchPlan plan) {
    auto launch = std::make_unique<Launch>(Launch{kernel, std::move(plan), nullptr, std::nullopt});
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
