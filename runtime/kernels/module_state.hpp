// The state of a module and its kernels. Private to this folder.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <shared_mutex>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/interface/types/struct_layout.hpp>
#include <bascule/jit/overloads/function_choice.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/jit/templates/specialization.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/runtime/kernels/image_source.hpp>
#include <bascule/runtime/kernels/module_variables.hpp>

namespace bascule {

struct ModuleState;

/// One image per architecture, loaded once per device: functions of a text, instances of its templates, or both.
class Unit {
  public:
    struct Loaded : Cache::Lookup {
        std::shared_ptr<const Library> library;  // for one architecture: devices of the same kind share it
    };

    /// `functions_too`: also the functions that are not templates. `images`: makes the images in place of the compiler.
    Unit(ModuleState& module, std::vector<Instance> instances, bool functions_too,
         const ImageSource* images = nullptr)
        : module_(module),
          instances_(std::move(instances)),
          functions_too_(functions_too),
          images_made_by_(images) {}

    const std::vector<Instance>& instances() const noexcept { return instances_; }
    Program program(Arch arch) const;
    Cache::Lookup compile(Arch arch);
    /// The program that contains this function, for queries to the compiler. Empty for code without a text.
    std::optional<ProbedProgram> probed(const std::string& expression, Arch arch);
    /// Whether compiling now would read the same headers as all compilations did.
    bool is_current() const;
    std::shared_ptr<const Image> compiled(Arch arch) const;
    /// A compiled image of any architecture, or null.
    std::shared_ptr<const Image> any_compiled() const;
    const Loaded& loaded(Device device);
    /// The result of an earlier `loaded`, or null.
    const Loaded* existing(Device device) const noexcept {
        return loaded_[static_cast<std::size_t>(device.ordinal())].load(std::memory_order_acquire);
    }

  private:
    struct Compiled {
        Arch asked;  ///< the image may be for an older architecture
        Cache::Lookup lookup;
    };
    const Compiled* find(Arch arch) const noexcept;  // the caller holds `compiling_`

    ModuleState& module_;
    std::vector<Instance> instances_;
    bool functions_too_;
    const ImageSource* images_made_by_;  // null: the compiler, from the text
    mutable std::mutex compiling_;       // guards `images_`; not held during a compilation
    std::vector<Compiled> images_;
    std::mutex loading_;
    std::array<std::atomic<const Loaded*>, max_devices> loaded_{};
    std::vector<std::unique_ptr<const Loaded>> owned_;
};

/// One function that can be launched.
struct KernelFunction {
    KernelFunction(std::string the_expression, Unit& the_unit)
        : expression(std::move(the_expression)), unit(the_unit) {}

    std::string expression;
    Unit& unit;
    std::array<std::atomic<const LoadedKernel*>, max_devices> loaded{};
    std::array<std::atomic<int>, max_devices> best_block{};  // without dynamic shared memory; 0: not computed
    std::mutex loading;
    std::vector<std::unique_ptr<const LoadedKernel>> owned;
    /// The compiler's reports about struct parameters of one image.
    struct Structs {
        std::shared_ptr<const Image> image;
        std::vector<std::pair<int, StructLayout>>
            compared;  ///< that fit the declaration of parameter `first`
        std::map<int, std::shared_ptr<const std::vector<StructMember>>> members;
    };
    enum class Text : std::uint8_t { not_asked, known, unknown };
    std::atomic<Text> text{Text::not_asked};  // only used if the module is not one text
    std::mutex comparing;                     // guards `structs`; not held while asking the compiler
    std::deque<Structs> structs;              // a deque, so that elements never move
};

struct KernelFamily;

/// The functions chosen so far for lists of argument types, with these explicit template arguments.
struct KernelChoices {
    struct Choice {
        std::vector<ArgumentType> types;
        KernelFunction* function = nullptr;
        std::vector<int> weak_integers;  // arguments that alone decided that a template parameter is `int`
    };

    const KernelFamily* family = nullptr;
    TemplateArguments given;
    std::shared_mutex mutex;
    std::deque<Choice> made;                                     // guarded by `mutex`; elements never move
    std::map<std::size_t, std::unique_ptr<Signature>> declared;  // guarded by `mutex`; by number of arguments
};

/// All declarations of one name.
struct KernelFamily {
    std::string name;
    std::vector<KernelDeclaration> declarations;
    bool has_templates = false;
    KernelFunction* sole = nullptr;  // set if there is one declaration, and it is not a template
    KernelChoices choices;           // without explicit template arguments
};

/// Returns the family that `is_exact` accepts, else the only one that `is_like` accepts, else null. Throws:
/// CompileError if several match.
KernelFamily* find_family(std::deque<KernelFamily>& families, const Source& source, const std::string& wanted,
                          const std::function<bool(const KernelFamily&)>& is_exact,
                          const std::function<bool(const KernelFamily&)>& is_like);
/// Adds each declaration to the family of its name.
void add_families(const std::vector<KernelDeclaration>& declarations, std::deque<KernelFamily>& families);
/// Makes a declaration for a kernel that the text does not declare readably.
KernelDeclaration declaration_of(const KernelImage& kernel);
/// Removes a leading `::`.
std::string_view without_global_scope(std::string_view name);

struct ModuleState {
    ModuleState(Source the_source, CompileOptions the_options, Cache& the_cache)
        : source(std::move(the_source)), options(std::move(the_options)), cache(the_cache) {}

    /// The function of this expression. If it has no image yet, an instance of a template (`kernel` is not empty) gets
    /// an image of its own, and any other function uses the module's image.
    KernelFunction& function(const Instance& which);
    /// The function of this expression. If it has no image yet, compiles one with these instances together.
    KernelFunction& function(const std::string& expression, const std::vector<Instance>& together);
    /// The function of this expression, or null.
    KernelFunction* known_function(const std::string& expression);
    /// Gives each of these instances a function in `unit`, unless it has one. The caller holds `growing`.
    void add_functions(const std::vector<Instance>& instances, Unit& unit);
    /// The variable that a name expression means, if it means one.
    std::optional<Instance> variable(const std::string& expression) const;
    /// Those of `wanted` that have no function yet, sorted and without duplicates.
    std::vector<Instance> without_function(std::vector<Instance> wanted);

    Source source;
    CompileOptions options;
    Cache& cache;
    std::shared_ptr<const ImageSource> images;  // null: the text is compiled
    ModuleVariables variables;
    std::vector<KernelDeclaration> declarations;
    std::deque<KernelFamily> families;  // one for each name; elements never move
    Unit* main = nullptr;  // the functions that are not templates, and the instances of name_expressions

    /// The templates of included headers, by name. Read when a name is looked up that the text does not contain.
    std::deque<KernelFamily>& header_families();
    /// The family in `some` that this name means, or null. Throws: CompileError if several match.
    KernelFamily* family_among(std::deque<KernelFamily>& some, const std::string& name) const;
    /// The family of this name that the text or one of its headers spells, or null. Throws: CompileError if several match.
    KernelFamily* spelled_family(const std::string& name);
    /// The family of a kernel that the image contains and the text does not spell, or null.
    KernelFamily* undeclared_family(const std::string& name, const Image& image);
    /// The family of an instance of a template that the text does not spell.
    KernelFamily& family_of(const Instance& instance);
    LoadedVariable variable(const Variable& wanted, Device device);
    /// Whether macros or includes may declare kernels that cannot be read in the text.
    bool may_have_macros() const;

    std::mutex growing;                   // guards the members below
    std::deque<Unit> units;               // elements never move
    std::deque<KernelFamily> undeclared;  // elements never move
    std::deque<KernelFamily> of_headers;  // elements never move
    bool headers_are_read = false;
    std::map<std::string, std::unique_ptr<KernelFunction>> functions;
    std::deque<KernelChoices> explicit_choices;

    std::atomic<bool> exposes_variables{false};
    AskedPatterns asked_patterns;
};

}  // namespace bascule
