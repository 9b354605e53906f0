// Support for pickling kernels, modules and launchers; the formats are in bascule._pickling.
#include <utility>
#include <vector>

#include "launch/known_launchers.hpp"
#include "launch/launcher.hpp"
#include "launch/prepared_launch.hpp"
#include "parts.hpp"
#include "support/toolkit.hpp"

namespace bascule::python {
namespace {

/// The arguments of `_make_module` for a module of the same program.
py::tuple module_recipe(const Module& module) {
    const Source& source = module.source();
    return py::make_tuple(source.text, source.name, source.first_line, source.directory, module.options(),
                          py::tuple(py::cast(module.name_expressions())));
}

/// The architecture that code with these options is compiled for on the current device.
std::string target(const CompileOptions& options) {
    prepare_toolkit();
    const Arch device = options.arch ? *options.arch : current_device().arch();
    return to_string(without_gil([&] { return Cache::process_default().target(options, device); }));
}

/// The arguments of `_find_kernel` after the module.
py::tuple kernel_reference(const KernelObject& self) {
    const KernelReference reference = self.kernel.reference();
    std::vector<std::pair<std::string, std::string>> together;
    for (const Instance& each : reference.together) together.emplace_back(each.kernel, each.expression);
    return py::make_tuple(reference.name, reference.given.positional, reference.given.named,
                          reference.expression, together);
}

KernelObject find_referred_kernel(const Module& module, std::string name, std::vector<std::string> positional,
                                  std::vector<std::pair<std::string, std::string>> named,
                                  std::string expression,
                                  const std::vector<std::pair<std::string, std::string>>& together) {
    KernelReference reference{.name = std::move(name),
                              .given = {std::move(positional), std::move(named)},
                              .expression = std::move(expression)};
    for (const auto& [kernel, instance] : together) reference.together.push_back({kernel, instance});
    prepare_toolkit();
    const GilReleased released;
    return {module.kernel(reference)};
}

/// Returns (kernel, config or None, work, shared_bytes, stream, peer, sync, whether streams are named).
py::tuple launcher_recipe(const py::object& launcher) {
    const LaunchState& state = state_of_launcher(launcher);
    const LaunchPlan& plan = state.plan;
    const LaunchOptions options = plan.options ? *plan.options : LaunchOptions{};
    const py::object config = plan.work.empty() ? py::cast(plan.config) : py::object(py::none());
    return py::make_tuple(KernelObject{state.kernel}, config, py::tuple(py::cast(plan.work)),
                          plan.shared_bytes, state.stream_object(), options.peer, options.sync,
                          !options.streams.empty());
}

}  // namespace

void bind_pickling(py::module_& module) {
    module.def("_module_recipe", &module_recipe, "module"_a);
    module.def("_target", &target, "options"_a);
    module.def("_exposes_variables", &Module::exposes_variables, "module"_a);
    module.def("_is_current", &Module::is_current, "module"_a, py::call_guard<GilReleased>());
    module.def(
        "_module_of", [](const KernelObject& self) { return self.kernel.module(); }, "kernel"_a);
    module.def("_kernel_reference", &kernel_reference, "kernel"_a);
    module.def("_find_kernel", &find_referred_kernel, "module"_a, "name"_a, "positional"_a, "named"_a,
               "expression"_a, "together"_a);
    module.def("_launcher_recipe", &launcher_recipe, "launcher"_a);
}

}  // namespace bascule::python
