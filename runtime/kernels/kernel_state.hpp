// What a module and its kernels remember. Private to this folder.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/argument_type.hpp>
#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/interface/types/struct_layout.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/choice/function_choice.hpp>
#include <bascule/jit/text/source.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/jit/types/kernel_declaration.hpp>
#include <bascule/jit/types/specialization.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/kernels/image_source.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/kernels/module_variables.hpp>

namespace bascule {

struct ModuleState;

/// One image per architecture, loaded once per device: the functions of a text, instances of its templates, or both.
class Unit {
  public:
    struct Loaded : Cache::Lookup {
        std::shared_ptr<const Library> library;  // of an architecture: devices of the same kind share it
    };

    /// `functions_too`: beside the instances, what is not a template. `images`: what makes them instead of the compiler.
    Unit(ModuleState& module, std::vector<Instance> instances, bool functions_too,
         const ImageSource* images = nullptr)
        : module_(module),
          instances_(std::move(instances)),
          functions_too_(functions_too),
          images_made_by_(images) {}

    const std::vector<Instance>& instances() const noexcept { return instances_; }
    Program program(Arch arch) const;
    Cache::Lookup compile(Arch arch);
    /// For questions about the text that has this function; nothing of code from elsewhere.
    std::optional<ProbedProgram> probed(const std::string& expression, Arch arch);
    /// Whether a compile now would read the headers of all that was compiled.
    bool is_current() const;
    std::shared_ptr<const Image> compiled(Arch arch) const;
    /// One that was compiled, for whichever architecture, or null.
    std::shared_ptr<const Image> any_compiled() const;
    const Loaded& loaded(Device device);
    /// What was loaded already, or null.
    const Loaded* existing(Device device) const noexcept {
        return loaded_[static_cast<std::size_t>(device.ordinal())].load(std::memory_order_acquire);
    }

  private:
    struct Compiled {
        Arch asked;  ///< of the image where the compiler knows it
        Cache::Lookup lookup;
    };
    const Compiled* find(Arch arch) const noexcept;  // `compiling_` is held

    ModuleState& module_;
    std::vector<Instance> instances_;
    bool functions_too_;
    const ImageSource* images_made_by_;  // null: the compiler, from the text
    mutable std::mutex compiling_;       // guards `images_`; not held while compiling
    std::vector<Compiled> images_;
    std::mutex loading_;
    std::array<std::atomic<const Loaded*>, max_devices> loaded_{};
    std::vector<std::unique_ptr<const Loaded>> owned_;
};

/// One function: what a launch launches.
struct KernelFunction {
    KernelFunction(std::string the_expression, Unit& the_unit)
        : expression(std::move(the_expression)), unit(the_unit) {}

    std::string expression;
    Unit& unit;
    std::array<std::atomic<const LoadedKernel*>, max_devices> loaded{};
    std::array<std::atomic<int>, max_devices> best_block{};  // without dynamic shared memory; 0: not asked
    std::mutex loading;
    std::vector<std::unique_ptr<const LoadedKernel>> owned;
    /// What the compiler said of parameters of one image that are structs.
    struct Structs {
        std::shared_ptr<const Image> image;
        std::vector<std::pair<int, StructLayout>>
            compared;  ///< with the layout that parameter `first` declares
        std::map<int, std::shared_ptr<const std::vector<StructMember>>> members;
    };
    enum class Text : std::uint8_t { not_asked, known, unknown };
    std::atomic<Text> text{Text::not_asked};  // of a module that is not one text
    std::mutex comparing;                     // guards what follows; not held while asking the compiler
    std::deque<Structs> structs;              // never moved
};

struct KernelFamily;

/// Which function each list of argument types means, with these explicit template arguments.
struct KernelChoices {
    struct Choice {
        std::vector<ArgumentType> types;
        KernelFunction* function = nullptr;
        std::vector<int> weak_integers;  // arguments that alone made a template parameter `int`
    };

    const KernelFamily* family = nullptr;
    TemplateArguments given;
    std::shared_mutex mutex;
    std::deque<Choice> made;                                     // guarded; entries never move
    std::map<std::size_t, std::unique_ptr<Signature>> declared;  // guarded; by the number of arguments
};

/// Every declaration of one name.
struct KernelFamily {
    std::string name;
    std::vector<KernelDeclaration> declarations;
    bool has_templates = false;
    KernelFunction* sole = nullptr;  // when there is one declaration, and it is not a template
    KernelChoices choices;           // without explicit template arguments
};

struct ModuleState {
    ModuleState(Source the_source, CompileOptions the_options, Cache& the_cache)
        : source(std::move(the_source)), options(std::move(the_options)), cache(the_cache) {}

    /// The function of this expression: one of the main image, or (`kernel` not empty) an instance with its
    /// own.
    KernelFunction& function(const Instance& which);
    /// The function of this expression, in an image that has these instances together unless it has one already.
    KernelFunction& function(const std::string& expression, const std::vector<Instance>& together);
    /// The function of this expression, or null.
    KernelFunction* known_function(const std::string& expression);
    /// Gives each of these instances that has no function yet one in `unit`. `growing` is held.
    void add_functions(const std::vector<Instance>& instances, Unit& unit);
    /// The variable that a name expression means, if it means one.
    std::optional<Instance> variable(const std::string& expression) const;
    /// Those of `wanted` that have no function yet, sorted, each once.
    std::vector<Instance> without_function(std::vector<Instance> wanted);

    Source source;
    CompileOptions options;
    Cache& cache;
    std::shared_ptr<const ImageSource> images;  // null: the text is compiled
    ModuleVariables variables;
    std::vector<KernelDeclaration> declarations;
    std::deque<KernelFamily> families;  // one for each name; never moved
    Unit* main =
        nullptr;  // the functions that are not templates, and instances that were asked for with them

    /// The templates of included headers, by name. Read when a name is looked up that the text does not have.
    std::deque<KernelFamily>& header_families();
    /// The one of `some` that a person means by this name, or null. Throws: CompileError where there are several.
    KernelFamily* family_among(std::deque<KernelFamily>& some, const std::string& name) const;
    /// The family of this name that the text or one of its headers spells, or null. Throws: CompileError where there are
    /// several.
    KernelFamily* spelled_family(const std::string& name);
    /// The family of this kernel, which the image has and the text does not spell, or null.
    KernelFamily* undeclared_family(const std::string& name, const Image& image);
    /// The family of an instance of a template that the text does not spell.
    KernelFamily& family_of(const Instance& instance);
    LoadedVariable variable(const Variable& wanted, Device device);
    /// Whether the text may declare what cannot be read in it.
    bool may_have_macros() const;

    std::mutex growing;                   // guards what follows
    std::deque<Unit> units;               // never moved
    std::deque<KernelFamily> undeclared;  // never moved
    std::deque<KernelFamily> of_headers;  // never moved
    bool headers_are_read = false;
    std::map<std::string, std::unique_ptr<KernelFunction>> functions;
    std::deque<KernelChoices> explicit_choices;

    std::atomic<bool> exposes_variables{false};
    AskedPatterns asked_patterns;
};

}  // namespace bascule
