// bascule.Kernel and bascule.Module.
#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/compile/nvrtc_search.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/runtime/driver/installation.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>

#include "context/device_object.hpp"
#include "kernels/template_arguments.hpp"
#include "launch/known_launchers.hpp"
#include "launch/launcher.hpp"
#include "launch/prepared_launch.hpp"
#include "parts.hpp"
#include "support/errors.hpp"
#include "support/toolkit.hpp"
#include "values/launch_config.hpp"

namespace bascule::python {
namespace {

// --- Launches ----------------------------------------------------------------------------------------------

/// Makes a launcher that chooses grid and block for an amount of work.
py::object forall(const KernelObject& self, const py::object& work, const py::object& stream,
                  std::uint32_t shared_bytes) {
    LaunchPlan plan = to_plan({}, stream);
    plan.work = to_extents("work", work);
    plan.shared_bytes = shared_bytes;
    const CallSite call = current_call();
    plan.site = call.site;
    LauncherKey known;
    if (stream.is_none() && shared_bytes == 0 && read_work(work.ptr(), known)) known.place = call.place;
    return make_known_launcher(self, std::move(plan), known);
}

void launch_kernel(const KernelObject& self, const py::object& grid, const py::object& block,
                   const py::tuple& arguments, const py::object& stream, const py::object& peer,
                   const py::object& sync, const py::object& streams, const py::kwargs& attributes) {
    LaunchPlan plan = to_plan(to_config("launch", grid, block, attributes), stream);
    plan.options = to_options(nullptr, peer, sync, streams);
    make_launcher(self.kernel, std::move(plan))(*arguments);
}

/// A plan without grid and block, for `explain` and `prepare`.
LaunchPlan unconfigured_plan() {
    LaunchPlan plan = to_plan({}, py::none());
    plan.configured = false;
    return plan;
}

py::object explain(const KernelObject& self, const py::args& arguments, const py::kwargs& keywords) {
    return make_launcher(self.kernel, unconfigured_plan()).attr("explain")(*arguments, **keywords);
}

bool takes_no_arguments(const Kernel& kernel) {
    return std::ranges::any_of(kernel.module().declarations(), [&](const KernelDeclaration& each) {
        return each.name == kernel.name() && each.parameters.empty();
    });
}

KernelObject prepare(const KernelObject& self, const py::args& arguments, const py::kwargs& keywords) {
    const Device device = current_device();
    const Kernel function = resolve_function(self.kernel, device);
    const bool takes_none = !function.is_function() && takes_no_arguments(function);
    if (arguments.empty() && keywords.empty() && !takes_none) {
        load(function, device);
        return {function};
    }
    LaunchState state(function, unconfigured_plan());
    return {PreparedLaunch(state, UnpackedArguments(arguments, keywords).get()).function()};
}

// --- Information about a kernel ----------------------------------------------------------------------------

/// The architecture of the module's options, else the current device's. Prepares the toolkit.
Arch arch_to_compile(const Module& module) {
    prepare_toolkit();
    return module.options().arch ? *module.options().arch : current_device().arch();
}

/// The image for the current device or the architecture of the options, without loading it.
std::shared_ptr<const Image> image_of(const KernelObject& self) {
    const Arch arch = arch_to_compile(self.kernel.module());
    const GilReleased released;
    return self.kernel.resolve_function(arch).compile(arch).image;
}

/// Compiles a kernel or a module without loading it.
template <class Object>
Cache::Lookup compile_for_options(const Object& object, const Module& module) {
    const Arch arch = arch_to_compile(module);
    Cache::Lookup compiled = without_gil([&] { return object.compile(arch); });
    issue_compile_warnings(*compiled.image, module.source());
    return compiled;
}

/// Returns (origin, milliseconds in NVRTC).
py::tuple describe_compile(const Cache::Lookup& compiled) {
    return py::make_tuple(to_string(compiled.origin), compiled.image->compile_milliseconds);
}

Provenance provenance_of(const KernelObject& self) {
    const Device device = current_device();
    const Kernel kernel = resolve_function(self.kernel, device);
    load(kernel, device);
    return *kernel.provenance(device);
}

/// The compiled function; empty for a template or overloads. If the options name an architecture, no driver is needed.
std::optional<KernelImage> compiled(const KernelObject& self) {
    if (const std::optional<Arch> named = self.kernel.module().options().arch) {
        prepare_toolkit();
        const GilReleased released;
        const Kernel kernel = self.kernel.resolve_function(*named);
        return kernel.is_function() ? std::optional(kernel.image(*named)) : std::nullopt;
    }
    const Device device = current_device();
    const Kernel kernel = resolve_function(self.kernel, device);
    if (!kernel.is_function()) return std::nullopt;
    // Loading would create a context just to answer a query.
    return device.in_use() ? *load(kernel, device).image : compile(kernel, device);
}

/// The mangled name. Throws: ArgumentError that says how to choose between functions.
std::string lowered_name_of(const KernelObject& self) {
    if (std::optional<KernelImage> image = compiled(self)) return image->lowered_name;
    return self.kernel.expression();
}

/// For a template or overloads, the parameters that the text declares.
py::list named_parameters_of(const KernelObject& self) {
    const std::optional<KernelImage> image = compiled(self);
    const Signature signature =
        image ? image->signature : self.kernel.declared(self.kernel.declaration().parameters.size());
    py::list list;
    for (const Parameter& each : signature.parameters) list.append(py::make_tuple(each.name, each.spelling));
    return list;
}

std::string signature_of(const KernelObject& self) {
    const std::optional<KernelImage> image = compiled(self);
    return image ? bascule::to_string(image->signature) : self.kernel.declared_signatures();
}

const LoadedKernel& load_for(const KernelObject& self, Device device) {
    return load(resolve_function(self.kernel, device), device);
}

/// Returns `ask(loaded kernel, device)` for the current device.
template <class Ask>
auto ask_loaded(const KernelObject& self, const Ask& ask) {
    const Device device = current_device();
    const LoadedKernel& loaded = load_for(self, device);
    return without_gil([&] { return ask(loaded, device); });
}

std::uint32_t threads_of(py::handle block) {
    std::uint64_t threads = 1;
    for (const std::uint64_t extent : to_extents("block", block))
        threads *= std::min<std::uint64_t>(extent, 65536);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, UINT32_MAX));
}

Occupancy occupancy(const KernelObject& self, py::handle block, std::uint32_t shared_bytes) {
    const std::uint32_t threads = threads_of(block);
    return ask_loaded(self, [&](const LoadedKernel& loaded, Device device) {
        return occupancy_of(loaded, device, threads, shared_bytes);
    });
}

/// Dynamic shared memory for blocks of 0 (unused) to `most` threads, computed by the user's function.
std::vector<std::uint32_t> shared_bytes_by_threads(const py::function& shared_bytes, std::uint32_t most) {
    std::vector<std::uint32_t> bytes{0};
    for (std::uint32_t threads = 1; threads <= most; ++threads) {
        const py::object given = shared_bytes(threads);
        py::detail::make_caster<std::uint32_t> number;
        if (!number.load(given, true)) {
            reject_field(
                ErrorKind::value, "shared_bytes",
                "`shared_bytes` gives the bytes of a block's dynamic shared memory, an int from 0 on; for {} "
                "threads it gives {}.",
                threads, safe_repr(given.ptr()));
        }
        bytes.push_back(py::detail::cast_op<std::uint32_t>(number));
    }
    return bytes;
}

std::uint32_t best_block(const KernelObject& self,
                         const std::variant<std::uint32_t, py::function>& shared_bytes,
                         std::optional<std::uint32_t> limit) {
    if (limit && *limit == 0)
        reject_field(ErrorKind::value, "limit", "`limit` is at least one thread, got 0.");
    const Device device = current_device();
    const LoadedKernel& loaded = load_for(self, device);
    const std::uint32_t most = std::min(limit.value_or(UINT32_MAX), loaded.limits.threads);
    std::vector<std::uint32_t> by_threads;
    if (const auto* function = std::get_if<py::function>(&shared_bytes))
        by_threads = shared_bytes_by_threads(*function, most);
    const std::uint32_t least = by_threads.empty()
                                    ? std::get<std::uint32_t>(shared_bytes)
                                    : *std::min_element(by_threads.begin() + 1, by_threads.end());
    check({.grid = {}, .block = {}, .shared_bytes = least}, loaded.limits);
    return without_gil([&] {
        return by_threads.empty() ? best_block_size(loaded, device, least, limit.value_or(0))
                                  : best_block_size(loaded, device, by_threads, limit.value_or(0));
    });
}

std::uint32_t shared_bytes_for(const KernelObject& self, std::uint32_t blocks, py::handle block) {
    const std::uint32_t threads = threads_of(block);
    return ask_loaded(self, [&](const LoadedKernel& loaded, Device device) {
        return most_shared_bytes(loaded, device, blocks, threads);
    });
}

void set_cache_preference(const KernelObject& self, const std::optional<std::string>& preference) {
    static constexpr std::array names = {"none", "shared", "l1", "equal"};  // in the order of CachePreference
    const auto found = std::ranges::find(names, preference.value_or("none"));
    if (found == names.end()) {
        reject_field(ErrorKind::value, "preference",
                     "`preference` is \"shared\", \"l1\", \"equal\" or None, got {}.",
                     "'" + *preference + "'");
    }
    ask_loaded(self, [&](const LoadedKernel& loaded, Device device) {
        prefer_cache(loaded, device, static_cast<CachePreference>(found - names.begin()));
    });
}

/// The offset and size in bytes of each parameter. Throws: ArgumentError that says how to choose between functions.
py::list parameter_layout_of(const KernelObject& self) {
    const std::optional<KernelImage> image = compiled(self);
    if (!image) self.kernel.expression();
    py::list layout;
    for (const Parameter& parameter : image->signature.parameters)
        layout.append(py::make_tuple(parameter.offset, parameter.bytes));
    return layout;
}

void bind_kernel_values(py::module_& module) {
    py::class_<KernelAttributes>(module, "KernelAttributes",
                                 "What the compiler made of a kernel. Does not change.")
        .def_readonly("registers", &KernelAttributes::registers, "Registers per thread.")
        .def_readonly("static_shared_bytes", &KernelAttributes::static_shared_bytes,
                      "Static shared memory per block, in bytes.")
        .def_readonly("local_bytes", &KernelAttributes::local_bytes,
                      "Local memory per thread, in bytes: arrays and spilled registers.")
        .def_readonly("constant_bytes", &KernelAttributes::constant_bytes,
                      "Constant memory of the module, in bytes.")
        .def_readonly("max_threads_per_block", &KernelAttributes::max_threads_per_block,
                      "The smaller of the device's and the kernel's limit.")
        .def_readonly("max_dynamic_shared_bytes", &KernelAttributes::max_dynamic_shared_bytes,
                      "The most dynamic shared memory per block, in bytes.")
        .def_property_readonly(
            "shared_carveout",
            [](const KernelAttributes& self) {
                return self.shared_carveout < 0 ? std::nullopt : std::optional(self.shared_carveout);
            },
            "Percent of the on-chip memory that is preferred as shared memory; None: the driver chooses.")
        .def_readonly("ptx_version", &KernelAttributes::ptx_version, "80 is compute_80.")
        .def_readonly("binary_version", &KernelAttributes::binary_version, "90 is sm_90.")
        .def_readonly("caches_globals_in_l1", &KernelAttributes::caches_globals_in_l1,
                      "Whether global loads are cached in L1, by -Xptxas=--dlcm=ca.")
        .def_readonly("needs_cluster", &KernelAttributes::needs_cluster,
                      "Whether it can be launched only in clusters.")
        .def_property_readonly(
            "cluster",
            [](const KernelAttributes& self) {
                const auto [x, y, z] = self.cluster;
                return x == 0 ? std::nullopt : std::optional(std::tuple(x, y, z));
            },
            "Blocks of its clusters in x, y and z, by __cluster_dims__; None where the text does not say it.")
        .def_readonly("non_portable_cluster", &KernelAttributes::non_portable_cluster,
                      "Whether clusters of more than 8 blocks are allowed.")
        .def(py::self == py::self);
    py::class_<Occupancy>(module, "Occupancy", "Occupancy of a kernel with one block size. Does not change.")
        .def_readonly("blocks", &Occupancy::blocks, "Resident blocks per SM.")
        .def_readonly("ratio", &Occupancy::ratio, "Resident warps over the most that an SM holds: 0 to 1.")
        .def_readonly("grid", &Occupancy::grid,
                      "Resident blocks on the device: the least grid that fills it.")
        .def(py::self == py::self);
}

[[noreturn]] void fail_unconfigured(const KernelObject& self, const py::args&, const py::kwargs& given) {
    const std::string& name = self.kernel.name();
    if (given.contains("grid") || given.contains("block")) {
        const auto value_of = [&](const char* what) {
            return given.contains(what) ? std::string(py::repr(given[what])) : std::string(what);
        };
        reject(ErrorKind::type, "kernel '{0}' takes the grid and the block in brackets: {0}[{1}, {2}](...).",
               name, value_of("grid"), value_of("block"));
    }
    reject(ErrorKind::type,
           "kernel '{0}' needs a launch configuration: {0}[grid, block](...), or {0}.forall(n)(...) for n "
           "threads of work.",
           name);
}

void bind_kernel(py::module_& module) {
    py::class_<KernelObject>(module, "Kernel", collected<KernelObject>(),
                             R"(One __global__ function of a Module.

`kernel[grid, block](arguments)` launches it; arguments are checked against the C++ parameters and converted. Compiled at first use;
any thread may use it.)")
        .def("__getitem__", &launcher_of, "key"_a)
        .def("__call__", &fail_unconfigured)
        .def(
            "forall", &forall, "work"_a, py::kw_only(), "stream"_a = py::none(), "shared_bytes"_a = 0,
            R"(A launcher with one thread for each of `work` items (an int, or up to three extents); the block size fills the device.
With no work the call checks its arguments and launches nothing.)")
        .def("launch", &launch_kernel, "grid"_a, "block"_a, "arguments"_a, py::kw_only(),
             "stream"_a = py::none(), "peer"_a = py::none(), "sync"_a = py::none(), "streams"_a = py::none(),
             "Launch once with every option by name: those of bascule.LaunchConfig, and peer, sync and "
             "streams as Launcher.options has them.")
        .def(
            "explain", &explain,
            R"(What a launch with these arguments would do; the grid is only in `kernel[grid, block].explain(...)`.

Nothing is enqueued. Returns a bascule.Explanation: which function, on which device and stream, which streams would wait for which,
and why.)")
        .def("prepare", &prepare,
             R"(Compile and load now; launch nothing. With arguments, check them as a launch would.
Returns the kernel: of a template or overloads, the one that these arguments choose.)")
        .def(
            "instantiate",
            [](const KernelObject& self, const py::args& positional, const py::kwargs& named) {
                return KernelObject{self.kernel.instantiate(to_template_arguments(positional, named))};
            },
            R"(The template with these arguments: `instantiate("float", 256)`, `instantiate(BLOCK=256)`.

Strings are C++ text; integers, bools and NumPy dtypes are taken as they are. What is omitted comes from the arguments of a launch:
the arrays decide first, then NumPy scalars, then Python numbers (bool, int, double), then the template's defaults.)")
        .def(
            "overload",
            [](const KernelObject& self, const std::string& parameter_types) {
                return KernelObject{self.kernel.overload(parameter_types)};
            },
            "parameter_types"_a,
            R"(The overload with exactly these parameter types: `overload("float*, int")`.)")
        .def_property_readonly("name", [](const KernelObject& self) { return self.kernel.name(); })
        .def_property_readonly(
            "is_template", [](const KernelObject& self) { return self.kernel.is_template(); },
            "Whether an instance has still to be chosen, by the arguments or `instantiate`.")
        .def_property_readonly(
            "signature", &signature_of,
            "The parameter list as the compiler sees it; of a template, as the text declares it.")
        .def_property_readonly("parameters", &named_parameters_of, "A list of (name, C++ type).")
        .def_property_readonly(
            "parameter_layout", &parameter_layout_of,
            "A list of (offset, size), in bytes: where each parameter lies in the buffer that a launch passes.")
        .def_property_readonly(
            "attributes", [](const KernelObject& self) { return ask_loaded(self, &attributes_of); },
            "A KernelAttributes: registers, shared, local and constant memory, limits, versions.")
        .def(
            "occupancy", &occupancy, "block"_a, "shared_bytes"_a = 0,
            R"(How many blocks of `block` threads (an int, or up to three extents) run on a multiprocessor at once.

>>> kernel.occupancy(256).blocks)")
        .def(
            "best_block", &best_block, "shared_bytes"_a = 0, py::kw_only(), "limit"_a = py::none(),
            R"(The number of threads per block that fills the device best, with this much dynamic shared memory, and at most
`limit`. `kernel.occupancy(block).grid` is the least grid that fills the device.

shared_bytes : int, or a function of a block's threads that gives its bytes.

>>> kernel.best_block(lambda threads: 4 * threads))")
        .def(
            "shared_bytes_for", &shared_bytes_for, "blocks"_a, "block"_a,
            R"(The most dynamic shared memory, in bytes, with which `blocks` blocks of `block` threads (an int, or up to three extents) run on
a multiprocessor at once. Also 0 if that many blocks do not fit even without dynamic shared memory.

>>> kernel.shared_bytes_for(2, 256))")
        .def(
            "set_cache_preference", &set_cache_preference, "preference"_a,
            R"(How the on-chip memory is divided for later launches on the current device: "shared", "l1", "equal", or None.

A hint to the driver, which shared_carveout in a launch's configuration overrides.)")
        .def_property_readonly(
            "lowered_name", &lowered_name_of,
            "The function's name in `ptx` and `cubin`, for programs that load those themselves.")
        .def_property_readonly("ptx", [](const KernelObject& self) { return image_of(self)->ptx; })
        .def_property_readonly("cubin",
                               [](const KernelObject& self) { return py::bytes(image_of(self)->cubin); })
        .def_property_readonly(
            "log",
            [](const KernelObject& self) {
                return readable_log(image_of(self)->log, self.kernel.module().source());
            },
            "NVRTC's messages, such as warnings, with the lines of your text.")
        .def_property_readonly("source",
                               [](const KernelObject& self) { return self.kernel.module().source().text; })
        .def_property_readonly(
            "origin", [](const KernelObject& self) { return to_string(provenance_of(self).origin); },
            "Where its code came from: 'compiled', 'memory' or 'disk'.")
        .def_property_readonly(
            "compile_ms", [](const KernelObject& self) { return provenance_of(self).compile_ms; },
            "Milliseconds in NVRTC when its image was made.")
        .def_property_readonly(
            "load_ms", [](const KernelObject& self) { return provenance_of(self).load_ms; },
            "Milliseconds in the driver to load its image.")
        .def("_compile_ahead", [](const KernelObject& self) {
            return describe_compile(compile_for_options(self.kernel, self.kernel.module()));
        });
}

// --- Modules -----------------------------------------------------------------------------------------------

/// Finds a kernel by its name. Compiles if a macro or an include may define the kernel.
KernelObject find_kernel(const Module& module, const std::string& name) {
    prepare_toolkit();
    const GilReleased released;
    return {module.kernel(name)};
}

std::string repr_of_module(const Module& module) {
    const std::vector<std::string> names = module.kernel_names();
    return fmt::format("<bascule.Module {} with {}>", module.source().name,
                       names.empty() ? "no kernels" : fmt::format("{}", fmt::join(names, ", ")));
}

KernelObject attribute(const Module& module, const std::string& name) {
    const bool dunder = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
    // IPython reads these attributes of every object that it displays. Looking for a kernel could compile.
    const bool display = (name.starts_with("_repr_") || name.starts_with("_ipython_")) && name.ends_with("_");
    if (dunder || display) throw py::attribute_error(name);
    try {
        return find_kernel(module, name);
    } catch (const CompileError& error) {
        raise_missing_attribute(error);
    }
}

/// Compiles the functions that are not templates. Returns the image's origin; None if all kernels are templates.
py::object compile_now(const Module& module) {
    if (module.only_templates()) return py::none();
    return to_str(to_string(compile_for_options(module, module).origin));
}

/// For {"scale": [("float",), ("double",)]}, compiles all instances together and returns the kernels in the same structure.
py::dict instantiate(const Module& module, const py::dict& wanted) {
    std::vector<NamedInstance> instances;
    for (auto [name, list] : wanted) {
        if (!py::isinstance<py::str>(name) ||
            (!py::isinstance<py::list>(list) && !py::isinstance<py::tuple>(list))) {
            reject(ErrorKind::type,
                   "instantiate takes a dict of kernel names to lists of template arguments, like "
                   "{{\"scale\": [(\"float\",), (\"double\",)]}}; got {}: {}.",
                   safe_repr(name.ptr()), safe_repr(list.ptr()));
        }
        for (py::handle arguments : list) {
            instances.emplace_back(name.cast<std::string>(), to_template_arguments(arguments));
        }
    }
    const Arch arch = arch_to_compile(module);
    const std::vector<Kernel> kernels = without_gil([&] { return module.instantiate(instances, arch); });
    py::dict made;
    std::size_t at = 0;
    for (auto [name, list] : wanted) {
        py::list functions;
        for (std::size_t i = 0; i < py::len(list); ++i) functions.append(KernelObject{kernels[at++]});
        made[name] = functions;
    }
    return made;
}

Module make_module(std::string text, std::string name, int first_line, std::string directory,
                   CompileOptions options, const std::vector<std::string>& name_expressions) {
    Source source{std::move(text), std::move(name), first_line, std::move(directory)};
    return Module(std::move(source), std::move(options), Cache::process_default(), name_expressions);
}

void bind_module(py::module_& module) {
    py::class_<Module, ModuleHolder<Module>>(
        module, "Module", collected<Module, ModuleHolder<Module>>(),
        R"(A CUDA C++ text, compiled: its kernels are attributes, and items by qualified name.

`module.scale`, `module["ns::scale"]`. The module's own attributes win over kernels of the same name; `module["kernels"]` always
means the kernel.)")
        .def("__getattr__", &attribute, "name"_a)
        .def("__getitem__", &find_kernel, "name"_a)
        .def("get_function", &find_kernel, "name"_a,
             "The same as `module[name]`, by CuPy's and PyCUDA's name.")
        .def(
            "instantiate", &instantiate, "instances"_a, py::pos_only(),
            R"(Compile instances of templates together, in one run of the compiler: their headers are read once.

instances : dict of kernel names to lists, with a tuple of template arguments for each instance, or a dict by template parameter, or
    a single argument; strings, integers, bools and NumPy dtypes as in Kernel.instantiate. All arguments of a template are needed.

Returns a dict of the same form, with Kernels. Launches of `module.name` whose arguments mean one of these instances find it without
a compile. The instances share one image, except those that were requested before. The cache on
disk keeps the set: the same set is found in the next process, another set is compiled anew.

>>> module.instantiate({"scale": [("float",), ("double",)], "block_sum": [{"T": "int", "BLOCK": 128}]}))")
        .def_property_readonly(
            "kernels", &Module::kernel_names,
            "Names of the __global__ functions, including those that macros and includes make.")
        .def_property_readonly("source", [](const Module& self) { return self.source().text; })
        .def("__iter__", [](const Module& self) { return py::iter(py::cast(self.kernel_names())); })
        .def("_ipython_key_completions_", &Module::kernel_names)
        .def(
            "precompile",
            [](const py::object& self, const py::object& instances, const py::object& workers,
               const py::object& progress) {
                return py::module_::import("bascule._precompile")
                    .attr("precompile_module")(self, instances, workers, progress);
            },
            "instances"_a, py::pos_only(), py::kw_only(), "workers"_a = py::none(), "progress"_a = true,
            R"(Compile instances of templates in processes of their own, several at once, into the cache on disk.

instances : dict of kernel names to lists of template arguments, as `instantiate` takes it. Each instance is an image of its own, the
    one that a launch with such arguments looks for; `instantiate` makes one image of all.
workers : int, how many processes compile; None is one for each processor, and at most one for each instance
progress : bool, show a bar where rich is installed and standard error is a terminal, or in a notebook

Returns a dict of the same form, with Kernels: they, and launches of `module.name` with such arguments, find the images on disk. What
was there before is not compiled again. Without a cache on disk, which is where the processes leave what they compile, nothing is
compiled, and a CacheError says so. Ctrl-C ends the processes. Any thread may call it.

Raises CompileError when instances fail, after all others are compiled: it says which failed and why.

>>> module.precompile({"scale": ["float", "double"]}, workers=2))")
        .def("__repr__", &repr_of_module)
        .def("_compile", &compile_now)
        .def("_compile_ahead",
             [](const Module& self) { return describe_compile(compile_for_options(self, self)); });
    module.def("_make_module", &make_module, "text"_a, "name"_a, "first_line"_a, "directory"_a, "options"_a,
               "name_expressions"_a);
    // Source text is UTF-8. Otherwise this raises UnicodeDecodeError.
    module.def("_read_source", [](const std::string& path) { return py::str(read_source(path).text); });
}

py::dict nvrtc_info() {
    prepare_toolkit();
    Cache& cache = Cache::process_default();
    const DriverLimit limit = driver_limit();
    cache.set_driver_limit(limit);
    const auto nvrtc = cache.nvrtc();
    return py::dict(
        "path"_a = nvrtc->path(), "version"_a = bascule::to_string(nvrtc->version()),
        "include_paths"_a = nvrtc->include_paths(), "accepted"_a = limit.accepts(nvrtc->version()),
        "conflict"_a = limit.driver.major == 0 ? "" : version_conflict(nvrtc->version(), limit.driver));
}

}  // namespace

void bind_kernels(py::module_& module) {
    bind_values(module);
    bind_launch_config(module);
    bind_kernel_values(module);
    register_launcher(module);
    register_bound_launch(module);
    bind_kernel(module);
    bind_module(module);
    bind_known_kernels(module);
    module.def("_cache_statistics", [] { return Cache::process_default().statistics(); });
    module.def("_cache_clear", [] { Cache::process_default().clear(); });
    module.def("_nvrtc_info", &nvrtc_info);
    module.def("_prelude", [] { return whole_prelude(); });
    module.def("_forget_toolkit", &forget_toolkit);
    module.def("_toolkit_libraries", &toolkit_nvrtc_libraries);
    module.def("_place_of_keyword", &place_of_keyword, "kernel"_a, "keyword"_a);
}

}  // namespace bascule::python
