// Module and Kernel: the objects that users hold.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {

class ImageSource;  // image_source.hpp
class Kernel;
class Library;         // library.hpp
struct KernelChoices;  // kernel_state.hpp
struct KernelFamily;
struct KernelDeclaration;  // jit/text/tokenizer.hpp
struct KernelFunction;
struct KernelImage;     // jit/compile/image.hpp
struct LoadedKernel;    // library.hpp
struct LoadedVariable;  // library.hpp
struct ModuleState;
struct ProbedProgram;  // jit/questions/probed_program.hpp
struct Variable;
template <class Signature>
class TypedKernel;  // typed_kernel.hpp

/// The origin of a kernel's image, for tables and reports.
struct Provenance {
    Origin origin = Origin::compiled;
    double compile_ms = 0;  ///< in NVRTC, when the image was made
    double load_ms = 0;     ///< in the driver
};

/// A kernel's name and template arguments.
using NamedInstance = std::pair<std::string, TemplateArguments>;

/// Identifies a kernel of a module. Another process finds the same kernel in a module with the same text, options and
/// name expressions.
struct KernelReference {
    std::string name{};         ///< as declared: "ns::scale"
    TemplateArguments given{};  ///< explicit ones, if the arguments of a launch choose the rest
    std::string expression{};   ///< of the chosen function: "ns::scale<float>"; empty if none is chosen
    std::vector<Instance> together{};  ///< the contents of its image; empty: the module's own image
};

/// A CUDA C++ text and its options. Functions that are not templates form one image, compiled once per architecture and
/// loaded once per device. Template instances have images of their own: one for all instances that were requested
/// together, and one for each other instance. All images of a module share one set of variables on each device.
/// Thread-safe. Copies share everything.
class Module {
  public:
    /// Finds the kernels of the text; compiles nothing yet. The instances that `name_expressions` name
    /// ("ns::scale<float>") become part of the functions' image, and so do the variables ("ns::table<float>", or
    /// "&ns::table<float>" if a header declares it), used or not. Throws: CompileError if the text cannot contain a
    /// kernel; ArgumentError for a name expression without all of a template's arguments.
    explicit Module(Source source, CompileOptions options = {}, Cache& cache = Cache::process_default(),
                    const std::vector<std::string>& name_expressions = {});

    /// A module whose images are not compiled from one text; made by `load_module` and `link` (linking.hpp). `place`
    /// has the name for messages. Makes the image for `device`, or for the architecture of the options. Throws: what
    /// `images` throws; CompileError without a kernel.
    Module(std::shared_ptr<const ImageSource> images, Source place, CompileOptions options, Cache& cache,
           Device device);

    const Source& source() const noexcept;  ///< empty text unless the module is one text
    const CompileOptions& options() const noexcept;
    /// The instances and variables in the module's own image.
    std::vector<std::string> name_expressions() const;
    std::vector<Instance> instances() const;  ///< the same
    /// The source of the images if the module is not one text, else null.
    std::shared_ptr<const ImageSource> images() const noexcept;
    Cache& cache() const noexcept;  ///< the cache that its images come from
    /// The __global__ functions of the text in order, including templates.
    const std::vector<KernelDeclaration>& declarations() const noexcept;
    /// True if all kernels are templates and no instance is part of the module's image. Nothing can then be compiled
    /// before an instance is chosen.
    bool only_templates() const noexcept;

    /// The names of the kernels, without duplicates: those that the text spells, and those that macros and includes
    /// make, as far as they are compiled.
    std::vector<std::string> kernel_names() const;

    /// Finds a kernel by its qualified name, or by its last component if that is unique. "scale<float>" is an instance.
    /// If the text does not spell the name, compiles, because a macro or an include may make the kernel. Throws:
    /// CompileError with the nearest names ("did you mean 'scale'?").
    Kernel kernel(const std::string& name) const;
    /// Finds the kernel that Kernel::reference identified, here or in another process. Compiles no more than `kernel(name)`.
    Kernel kernel(const KernelReference& reference) const;

    /// Compiles these instances together into one image. Instances that were requested before keep theirs. Launches
    /// whose arguments select one of them use it. Throws: ArgumentError for a kernel that is not a single template, and
    /// for incomplete template arguments; CompileError, LibraryError.
    std::vector<Kernel> instantiate(const std::vector<NamedInstance>& wanted, Arch arch) const;

    /// Compiles the functions that are not templates, without loading them. Throws: CompileError, also if the text has
    /// no kernels; LibraryError.
    Cache::Lookup compile(Arch arch) const;
    /// Returns that image loaded for `device`. Throws: as `compile`, and CudaError.
    std::shared_ptr<const Library> library(Device device) const;
    /// The memory of a variable of the text, which all kernels of the module share. If no loaded kernel uses the
    /// variable, it is loaded, alone if necessary. Throws: CompileError if that is impossible; LibraryError, CudaError.
    LoadedVariable variable(const Variable& variable, Device device) const;
    /// The compiled program, for queries to the compiler. The module must be one text.
    ProbedProgram probed(Device device) const;

    /// Whether everything compiled so far would be compiled from the same headers now. Compiles programs whose headers
    /// are unknown. Throws: LibraryError.
    bool is_current() const;
    /// True if no image that a launch may need has variables. False before the module is compiled.
    bool is_stateless() const;
    /// Whether the host may have written to variables of this text. No other module of the text has their values.
    bool exposes_variables() const noexcept;
    void note_exposed_variables() const noexcept;

  private:
    friend class Kernel;
    Instance instance_of(const NamedInstance& wanted) const;
    Kernel named_instance(const NamedInstance& named) const;
    KernelFamily* undeclared_family(const std::string& name) const;
    Kernel kernel_of_images(const std::string& name) const;

    std::shared_ptr<ModuleState> state_;
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
    /// True if the compiler cannot make `resolve_function` return another kernel.
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
    /// Returns the function if the compiler sees only one (an #if may choose between several), else this kernel.
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
    void fit_structures(ArgumentPack& args, Device device) const;

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
