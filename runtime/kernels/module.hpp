// Module: a text, or code that was compiled elsewhere, and its kernels by name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

class ImageSource;         // image_source.hpp
class Kernel;              // kernel.hpp
class Library;             // library.hpp
struct KernelDeclaration;  // jit/text/tokenizer.hpp
struct KernelFamily;
struct LoadedVariable;  // library.hpp
struct ModuleState;     // module_state.hpp
struct ProbedProgram;   // jit/questions/probed_program.hpp
struct Variable;

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

    /// Compiles the functions that are not templates, without loading them, as for a device of this architecture. From
    /// 9.0 on, the code is for exactly this architecture (sm_90a). An architecture in the options takes precedence.
    /// Throws: CompileError, also if the text has no kernels; LibraryError.
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
    /// True if it is certain that no image that a launch may need has variables. False also if that is unknown: before
    /// the module is compiled, for a text that may contain templates, and for linked or precompiled code.
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

}  // namespace bascule
