// Facts about a kernel that are known without compiling or loading: for reprs, documentation and completion.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

#include "context/device_object.hpp"
#include "launch/known_launchers.hpp"
#include "parts.hpp"

namespace bascule::python {
namespace {

struct KnownKernel {
    std::optional<Device> device;                      ///< the current one; empty if no driver can be loaded
    std::string where;                                 ///< the device's name for display
    const LoadedKernel* loaded = nullptr;              ///< null if it is not loaded on that device
    std::shared_ptr<const Image> image{};              ///< null if it is not compiled
    std::string signature;                             ///< from the compiler if compiled, else from the text
    std::optional<std::vector<Parameter>> parameters;  ///< empty for overloads
};

/// The parameters that the text declares; empty if several kernels have this name.
std::optional<std::vector<Parameter>> declared_parameters(const Kernel& kernel) {
    const auto is_own = [&](const std::string& name) { return name == kernel.name(); };
    if (std::ranges::count_if(kernel.module().declarations(), is_own, &KernelDeclaration::name) > 1)
        return std::nullopt;
    return kernel.declared(kernel.declaration().parameters.size()).parameters;
}

/// The lines of the text that declare the kernel, counted from 1.
py::list lines_of(const Kernel& kernel) {
    py::list lines;
    for (const KernelDeclaration& each : kernel.module().declarations()) {
        if (each.name == kernel.name()) lines.append(each.line);
    }
    return lines;
}

KnownKernel known_kernel(const Kernel& kernel) {
    KnownKernel known;
    try {
        known.device = current_device();
        known.where = to_string(*known.device);
    } catch (const Error&) {  // of a library or the driver
        known.where = "no device";
    }
    const std::optional<Arch> named = kernel.module().options().arch;
    if (kernel.is_function() && known.device) known.loaded = kernel.existing(*known.device);
    if (kernel.is_function() && (named || known.device))
        known.image = kernel.compiled(named ? *named : known.device->arch());
    const KernelImage* compiled = known.image == nullptr ? nullptr : known.image->find(kernel.expression());
    if (compiled == nullptr) {
        known.image = nullptr;
        known.signature = kernel.declared_signatures();
        known.parameters = declared_parameters(kernel);
    } else {
        known.signature = bascule::to_string(compiled->signature);
        known.parameters = compiled->signature.parameters;
    }
    return known;
}

/// Names and types come from the text, which may contain bytes that are not UTF-8.
py::dict facts_of_kernel(const KernelObject& self) {
    const KnownKernel known = known_kernel(self.kernel);
    const Module& module = self.kernel.module();
    py::list instances;
    for (Kernel& each : self.kernel.instances()) instances.append(KernelObject{std::move(each)});
    py::dict facts("name"_a = to_readable(self.kernel.name()), "device"_a = known.where,
                   "signature"_a = to_readable(known.signature), "is_loaded"_a = known.loaded != nullptr,
                   "is_compiled"_a = known.image != nullptr, "is_function"_a = self.kernel.is_function(),
                   "instances"_a = instances, "parameters"_a = py::none(), "arch"_a = py::none(),
                   "text"_a = to_readable(module.source().text), "file"_a = to_readable(module.source().name),
                   "first_line"_a = module.source().first_line, "lines"_a = lines_of(self.kernel));
    if (known.image != nullptr) facts["arch"] = bascule::to_string(known.image->arch);
    if (known.parameters) {
        py::list parameters;
        py::set written;  // names of arrays that the kernel may write; known once it is compiled
        for (const Parameter& each : *known.parameters) {
            parameters.append(py::make_tuple(to_readable(each.name), to_readable(each.spelling)));
            if (takes_arrays(each.type) && !each.type.constant) written.add(to_readable(each.name));
        }
        facts["parameters"] = parameters;
        facts["written"] = written;
    }
    return facts;
}

/// Compiles nothing, because a debugger may display a kernel at any time.
std::string repr_of_kernel(const KernelObject& self) {
    const KnownKernel known = known_kernel(self.kernel);
    const char* state = known.loaded != nullptr || !self.kernel.is_function() ? "" : " (not loaded yet)";
    return fmt::format("<bascule.Kernel {}{} on {}>", known.signature, state, known.where);
}

}  // namespace

void bind_known_kernels(py::module_& module) {
    add_method(module.attr("Kernel"), "__repr__", &repr_of_kernel);
    module.def("_kernel_facts", &facts_of_kernel, "kernel"_a);
    module.def("_module_place", [](const Module& self) {
        return py::make_tuple(to_readable(self.source().name), self.source().first_line);
    });
}

}  // namespace bascule::python
