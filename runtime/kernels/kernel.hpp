// Module and Kernel: the objects that users hold.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/probes/probed_program.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/jit/types/specialization.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

class ImageSource;  // image_source.hpp
class Kernel;
struct KernelChoices;  // kernel_state.hpp
struct KernelFamily;
struct KernelFunction;
struct ModuleState;
struct Variable;
template <class Signature>
class TypedKernel;  // typed_kernel.hpp

/// Where the image of a kernel came from, for tables and reports.
struct Provenance {
    Origin origin = Origin::compiled;
    double compile_ms = 0;  ///< in NVRTC, when the image was made
    double load_ms = 0;     ///< in the driver
};

/// Template arguments for one kernel of a module.
using NamedInstance = std::pair<std::string, TemplateArguments>;

/// Which kernel of a module this is, in words: another process finds it in its own module of the same text, options
/// and name expressions.
struct KernelReference {
    std::string name{};         ///< as declared: "ns::scale"
    TemplateArguments given{};  ///< where the arguments of a launch choose the rest
    std::string expression{};   ///< of the chosen function: "ns::scale<float>"; empty while none is chosen
    std::vector<Instance> together{};  ///< what its image has; empty: it is part of the module's own image
};

/// A CUDA C++ text and its options. Its functions that are not templates are one image, compiled once per
/// architecture and loaded once per device. Instances of templates are images of their own: one for all that were asked
/// for together, and one for each other. All images of a module have one set of variables on each device. Thread-safe.
/// Copies share everything.
class Module {
  public:
    /// Finds the kernels of the text; compiles nothing yet. The instances that `name_expressions` name
    /// ("ns::scale<float>") are part of the image of the functions, and so are the variables ("ns::table<float>", or
    /// "&ns::table<float>" where a header declares it), used or not. Throws: CompileError when there can be no kernel;
    /// ArgumentError for a name expression that does not say all of a template's arguments.
    explicit Module(Source source, CompileOptions options = {}, Cache& cache = Cache::process_default(),
                    const std::vector<std::string>& name_expressions = {});

    /// Of images that are not compiled from one text: `load_module` and `link` (linking.hpp) make one. `place` has the
    /// name for messages. Makes the image for `device`, or for the architecture of the options. Throws: what the images
    /// do; CompileError where they have no kernel.
    Module(std::shared_ptr<const ImageSource> images, Source place, CompileOptions options, Cache& cache,
           Device device);

    const Source& source() const noexcept;  ///< without a text where there is not one alone
    const CompileOptions& options() const noexcept;
    /// The instances and variables in the module's own image.
    std::vector<std::string> name_expressions() const;
    std::vector<Instance> instances() const;  ///< the same
    /// Where its images come from when it is not one text, else null.
    std::shared_ptr<const ImageSource> images() const noexcept;
    Cache& cache() const noexcept;  ///< where its images come from
    /// The __global__ functions of the text, templates included, in order.
    const std::vector<KernelDeclaration>& declarations() const noexcept;
    /// Whether all kernels are templates, and no instance is part of the module's image: then there is nothing to
    /// compile before one is chosen.
    bool only_templates() const noexcept;

    /// The names of the kernels, each once: those of the text, and those that macros and includes make, as far as
    /// they are compiled.
    std::vector<std::string> kernel_names() const;

    /// A kernel by its qualified name, or by its last component where only one has it; "scale<float>" is an
    /// instance. Compiles where the text does not spell the name: a macro or an include may make the kernel.
    /// Throws: CompileError with the nearest names ("did you mean 'scale'?").
    Kernel kernel(const std::string& name) const;
    /// What Kernel::reference told, here or in another process. Compiles nothing that `kernel(name)` would not.
    Kernel kernel(const KernelReference& reference) const;

    /// Compiles these instances together, in one run of the compiler, to one image; those that were asked for before
    /// keep theirs. Launches whose arguments mean one of them find it. Throws: ArgumentError for a kernel that is not
    /// one template, and for arguments that do not say all of it; CompileError, LibraryError.
    std::vector<Kernel> instantiate(const std::vector<NamedInstance>& wanted, Arch arch) const;

    /// The image of the functions that are not templates; not loaded. Throws: CompileError, also when there is no
    /// kernel at all; LibraryError.
    Cache::Lookup compile(Arch arch) const;
    /// That image, loaded for `device`. Throws: as `compile`, and CudaError.
    std::shared_ptr<const Library> library(Device device) const;
    /// The memory of a variable of the text, which all kernels of the module share. It is loaded, alone if need be, where no
    /// kernel that was loaded uses it. Throws: CompileError where that cannot be; LibraryError, CudaError.
    LoadedVariable variable(const Variable& variable, Device device) const;
    /// For questions about that code, of a module that is one text.
    ProbedProgram probed(Device device) const;

    /// Whether all that was compiled of it so far would be compiled from the same headers here and now. Compiles what is
    /// of unknown headers. Throws: LibraryError.
    bool is_current() const;
    /// Whether nothing that a launch can need has variables. False before it is compiled.
    bool is_stateless() const;
    /// Whether the host may have written to variables of this text: their values are in no other module of it.
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

/// The __global__ functions of one name in a module: one function, or a template, or several overloads, of
/// which the arguments choose. Thread-safe. Copies share everything.
class Kernel {
  public:
    Kernel(Source source, const std::string& name, CompileOptions options = {},
           Cache& cache = Cache::process_default());

    /// As declared: "ns::scale".
    const std::string& name() const noexcept;
    const Module& module() const noexcept;
    const KernelDeclaration& declaration() const noexcept;  ///< the first one, where there are overloads

    /// Whether this is one function, so that the members below the next line can be used.
    bool is_function() const noexcept { return function_ != nullptr; }
    /// Whether nothing that the compiler sees can make `resolve_function` return another one.
    bool is_resolved() const noexcept;
    /// Whether there is a template among the functions of this name, and none of its instances is chosen.
    bool is_template() const noexcept;
    /// As the text declares it; overloads on lines of their own.
    std::string declared_signatures() const;
    KernelReference reference() const;

    /// The function that these arguments select; itself where there is only one. The rule is in
    /// jit/types/specialization.hpp. Compiles what is needed to know. Throws: ArgumentError when template arguments
    /// cannot be deduced, and when no overload or several fit; CompileError, LibraryError.
    Kernel for_arguments(std::span<const ArgumentValue> arguments, Device device) const;
    /// The same where arguments of these types were seen before, else nothing; compiles nothing.
    std::optional<Kernel> known_for_arguments(std::span<const ArgumentValue> arguments) const;
    /// The function where the compiler sees one alone (an #if may choose between several), else this.
    /// Throws: CompileError, LibraryError.
    Kernel resolve_function(Device device) const;
    /// The same, compiled for an architecture: no driver is needed.
    Kernel resolve_function(Arch arch) const;
    /// With these template arguments; omitted ones come from the arguments of a launch. Throws:
    /// ArgumentError.
    Kernel instantiate(TemplateArguments arguments) const;
    /// The overload with exactly these parameter types, separated by commas: "float*, int".
    /// Throws: CompileError when there is none.
    Kernel overload(const std::string& parameter_types) const;
    /// With a C++ signature, so that calls are checked and converted by the host's compiler:
    /// `typed<void(float, const float*, float*, int)>({"float"})`. Omitted template arguments
    /// follow from the signature, overloads too. Throws: ArgumentError naming the first parameter whose type
    /// is another one; CompileError, LibraryError, CudaError. Defined in typed_kernel.hpp.
    template <class Signature>
    TypedKernel<Signature> typed(std::vector<std::string> template_arguments = {},
                                 Device device = Device::current()) const;
    /// Its functions that launches or `instantiate` have asked for so far, by name expression; of a kernel that is one
    /// function, none.
    std::vector<Kernel> instances() const;
    /// What the text declares for this many arguments, types as they are written: names and places for
    /// messages. Lives as long as the module. Throws: ArgumentError when no declaration takes so many.
    const Signature& declared(std::size_t arguments) const;

    // --- Of one function. Throw ArgumentError, which says how to choose one, unless `is_function`.

    /// The name expression: "ns::scale<float>".
    const std::string& expression() const;
    /// Compiled and loaded for `device`; the same object for as long as the module lives. A hit is one
    /// lookup, without a lock. Throws: CompileError, LibraryError, CudaError.
    const LoadedKernel& loaded(Device device) const;
    /// What `loaded` returned before, or null.
    const LoadedKernel* existing(Device device) const;
    const Signature& signature(Device device = Device::current()) const;
    /// Its signature and its name in the image, compiled for an architecture and not loaded: no driver is needed.
    KernelImage image(Arch arch) const;
    /// The image that has it, compiled for an architecture; not loaded, so that no driver is needed.
    Cache::Lookup compile(Arch arch) const;
    /// That image if it was compiled by this module already, else null.
    std::shared_ptr<const Image> compiled(Arch arch) const;
    std::optional<Provenance> provenance(Device device) const;  ///< none when it was not loaded yet
    std::shared_ptr<const Library> library(Device device) const;

    /// For questions about the code that is loaded for `device`, or would be.
    ProbedProgram probed(Device device) const;
    /// Compares the structures among the arguments, field by field, with the structs that the kernel
    /// declares, and writes the tuples that are for structs: the compiler is asked once for each. Launching does
    /// it too. Throws: ArgumentError with the difference.
    void fit_structures(ArgumentPack& args, Device device) const;

    /// Checks the geometry, waits for the producers, launches, makes the producers wait, keeps the owners.
    /// `owners` are taken also when this throws. Throws: ArgumentError before the first operation; CudaError.
    /// `site` is for reports of faults.
    void launch(StreamRef stream, const LaunchConfig& config, ArgumentPack& args, const Owners& owners = {},
                LaunchSite site = {}) const;

    /// A block size that fills the device, and the grid that gives `work` threads. `work` is (x, y, z) in
    /// threads. Throws: ArgumentError for no work, and for more than a grid can have.
    LaunchConfig configuration_for(Device device, std::span<const std::uint64_t> work,
                                   std::uint32_t shared_bytes = 0) const;

  private:
    friend class Module;
    Kernel(Module module, KernelFamily* family, KernelFunction* function, KernelChoices* choices) noexcept
        : module_(std::move(module)), family_(family), function_(function), choices_(choices) {}
    KernelFunction& function() const;
    /// Whether the compiler can be asked about it.
    bool has_text(Device device) const;
    /// The instance that these arguments name; nothing where they leave something open.
    std::optional<Instance> instance_for(const TemplateArguments& given) const;

    Module module_;  // owns what the pointers point to
    KernelFamily* family_;
    KernelFunction* function_;  // null: a template, or overloads
    KernelChoices* choices_;    // of the arguments; null where there is nothing to choose
};

}  // namespace bascule
