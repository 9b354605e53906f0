// Which function of a name the arguments of a launch mean: instances of templates, and overloads. The rule is
// in jit/types/specialization.hpp and jit/types/SIGNATURES.md ("Templates and overloads").
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument_type.hpp>
#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/text/source.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/jit/types/specialization.hpp>
#include <bascule/jit/types/type_pattern.hpp>

namespace bascule {

/// What the compiler said of templates whose text alone is not clear. One for each text. Thread-safe.
class AskedPatterns {
  public:
    std::optional<std::vector<TypePattern>> find(const KernelDeclaration& declaration) const;
    void add(const KernelDeclaration& declaration, std::vector<TypePattern> patterns);

  private:
    mutable std::mutex mutex_;
    std::map<const KernelDeclaration*, std::vector<TypePattern>> patterns_;
};

/// All that a choice looks at. Borrows everything.
struct ChoiceRequest {
    const std::string& name;
    std::span<const KernelDeclaration> declarations;  ///< all of that name
    const TemplateArguments& given;
    std::span<const ArgumentType> arguments;
    const Source& source;
    const CompileOptions& options;
    Arch arch;
    Cache& cache;
    AskedPatterns& asked;
    /// The image of an instance, and that of the text's own functions for the empty one.
    std::function<std::shared_ptr<const Image>(const Instance&)> compile;
};

struct FunctionChoice {
    Instance function;               ///< without `kernel`: one of the text's own functions
    std::vector<int> weak_integers;  ///< arguments that alone made a template parameter `int`
};

/// Compiles what is needed to know. Throws: ArgumentError when template arguments cannot be deduced, and when no
/// overload or several fit; CompileError, LibraryError.
FunctionChoice choose_function(const ChoiceRequest& request);

/// Throws ArgumentError for a Python int that alone made T `int` and does not fit one: another T is never taken
/// silently.
void check_weak_integers(const std::string& kernel, const Signature& declared,
                         const std::vector<int>& weak_integers, std::span<const ArgumentValue> arguments);

/// The functions of a name in the text's own image, each once.
std::vector<KernelImage> functions_named(const std::string& name, const Image& image);

/// Whether the template arguments are complete, so that the arguments of a launch add nothing.
bool says_all(const KernelDeclaration& declaration, const Deduction& deduction);

/// "float*, int" as types, spelled as the tokenizer spells them, so that blanks do not matter.
std::vector<std::string> split_types(const std::string& types);

/// A kernel's name and template arguments, of "ns::saxpy<float, 256>"; without arguments where there is no `<`.
/// Throws: ArgumentError (value) when it does not end with `>`.
std::pair<std::string, TemplateArguments> split_instance_name(const std::string& expression);

}  // namespace bascule
