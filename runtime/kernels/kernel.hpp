// Kernel: the functions of one name in a module, which launches choose from.
#pragma once

#include <optional>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/kernels/module.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {

struct KernelChoices;  // module_state.hpp
struct KernelFamily;
struct KernelDeclaration;  // jit/text/tokenizer.hpp
struct KernelFunction;
struct KernelImage;   // jit/program/program.hpp
struct LoadedKernel;  // library.hpp
template <class Signature>
class TypedKernel;  // typed_kernel.hpp

/// The origin of a kernel's image, for tables and reports.
struct Provenance {
    Origin origin = Origin::compiled;
    double compile_ms = 0;  ///< in NVRTC, when the image was made
    double load_ms = 0;     ///< in the driver
};

/// The __global__ functions of one name in a module: a function, a template, or several overloads, among which the
/// arguments of a launch choose. Thread-safe. Copies share everything.
class Kernel {
  public:
    Kernel(Source source, const std::string& name, CompileOptions options = {},
           Cache& cache = Cache::process_default());

    /// The name as declared: "ns::scale".
    const std::string& name() const noexcept;
    const Module& module() const noexcept;
    const KernelDeclaration& declaration() const noexcept;  ///< the first one if there are overloads

    /// True if this is one function, so that the members of the second part of this class can be used.
    bool is_function() const noexcept { return function_ != nullptr; }
    /// True if `resolve_function` returns this kernel without asking the compiler.
    bool is_resolved() const noexcept;
    /// True if a function of this name is a template and no instance is chosen.
    bool is_template() const noexcept;
    /// The declarations in the text, one overload per line.
    std::string declared_signatures() const;
    KernelReference reference() const;

    /// Returns the function that these arguments select, or this kernel if there is only one. The rule is in
    /// jit/templates/specialization.hpp. Compiles what it needs to know. Throws: ArgumentError if template arguments cannot
    /// be deduced, or if not exactly one overload fits; CompileError, LibraryError.
    Kernel for_arguments(std::span<const ArgumentValue> arguments, Device device) const;
    /// The same if arguments of these types were seen before, else nothing. Compiles nothing.
    std::optional<Kernel> known_for_arguments(std::span<const ArgumentValue> arguments) const;
    /// Returns the function that the compiler sees, because an #if may choose between several. Returns a kernel of all
    /// overloads if it sees several, and this kernel if it sees none or if this kernel needs no compile to be resolved.
    /// Throws: CompileError, LibraryError.
    Kernel resolve_function(Device device) const;
    /// The same for an architecture, without a driver.
    Kernel resolve_function(Arch arch) const;
    /// Sets template arguments. Omitted ones are deduced from the arguments of a launch. Throws: ArgumentError.
    Kernel instantiate(TemplateArguments arguments) const;
    /// Returns the overload with exactly these parameter types, separated by commas: "float*, int". Throws:
    /// CompileError if it does not exist.
    Kernel overload(const std::string& parameter_types) const;
    /// Gives the kernel a C++ signature, so that the host's compiler checks and converts arguments: `typed<void(float,
    /// const float*, float*, int)>({"float"})`. Overloads and omitted template arguments follow from the signature.
    /// Throws: ArgumentError naming the first parameter whose type differs; CompileError, LibraryError, CudaError.
    /// Defined in typed_kernel.hpp.
    template <class Signature>
    TypedKernel<Signature> typed(std::vector<std::string> template_arguments = {},
                                 Device device = Device::current()) const;
    /// The instances and overloads that launches or `instantiate` have requested so far, by name expression. Empty if
    /// this kernel is one function.
    std::vector<Kernel> instances() const;
    /// The text's declaration with this many parameters: types as written, with names and places for messages. Lives as
    /// long as the module. Throws: ArgumentError if no declaration has this many parameters.
    const Signature& declared(std::size_t arguments) const;

    // --- Members of one function. Unless `is_function`, they throw ArgumentError that says how to choose a function.

    /// The name expression: "ns::scale<float>".
    const std::string& expression() const;
    /// The function compiled and loaded for `device`; always the same object while the module lives. If it is loaded,
    /// this takes one look-up without a lock. Throws: CompileError, LibraryError, CudaError.
    const LoadedKernel& loaded(Device device) const;
    /// The result of an earlier `loaded`, or null.
    const LoadedKernel* existing(Device device) const;
    const Signature& signature(Device device = Device::current()) const;
    /// Its signature and its name in the image, compiled for an architecture. Needs no driver.
    KernelImage image(Arch arch) const;
    /// The image that contains it, compiled for an architecture. Needs no driver.
    Cache::Lookup compile(Arch arch) const;
    /// The same image if this module has compiled it, else null.
    std::shared_ptr<const Image> compiled(Arch arch) const;
    std::optional<Provenance> provenance(Device device) const;  ///< empty if it is not loaded
    std::shared_ptr<const Library> library(Device device) const;

    /// The program of the code that is, or would be, loaded for `device`, for queries to the compiler.
    ProbedProgram probed(Device device) const;
    /// Compares structured arguments, field by field, with the structs that the kernel declares, and converts tuples to
    /// structs. Asks the compiler once for each struct. Launching does this too. Throws: ArgumentError with the difference.
    void convert_structures(ArgumentPack& args, Device device) const;

    /// Checks the geometry, waits for the producers, launches, makes the producers wait, and keeps the owners. `owners`
    /// are taken even if this throws. Throws: ArgumentError before the first operation; CudaError. `site` is for
    /// reports of faults.
    void launch(StreamRef stream, const LaunchConfig& config, ArgumentPack& args, const Owners& owners = {},
                LaunchSite site = {}) const;

    /// Returns a block size that fills the device and a grid with at least `work` threads. `work` is (x, y, z) in
    /// threads. Throws: ArgumentError for no work, and for more than a grid can have.
    LaunchConfig configuration_for(Device device, std::span<const std::uint64_t> work,
                                   std::uint32_t shared_bytes = 0) const;

  private:
    friend class Module;
    Kernel(Module module, KernelFamily* family, KernelFunction* function, KernelChoices* choices) noexcept
        : module_(std::move(module)), family_(family), function_(function), choices_(choices) {}
    KernelFunction& function() const;
    /// Whether the compiler can be asked about the kernel.
    bool has_text(Device device) const;
    /// The instance that these arguments name; empty if they are incomplete.
    std::optional<Instance> instance_for(const TemplateArguments& given) const;

    Module module_;  // owns what the pointers point to
    KernelFamily* family_;
    KernelFunction* function_;  // null for a template, or overloads
    KernelChoices* choices_;    // per list of argument types; null if there is nothing to choose
};

}  // namespace bascule
