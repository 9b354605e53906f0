// Chooses the function that a launch calls, by its arguments, among instances of templates and overloads. The rules are
// in jit/templates/specialization.hpp and jit/signatures/SIGNATURES.md ("Templates and overloads").
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/templates/specialization.hpp>

namespace bascule {

/// The compiler's answers about templates whose text is not clear. There is one object for each text. Thread-safe.
class AskedPatterns {
  public:
    std::optional<std::vector<TypePattern>> find(const KernelDeclaration& declaration) const;
    void add(const KernelDeclaration& declaration, std::vector<TypePattern> patterns);

  private:
    mutable std::mutex mutex_;
    std::map<const KernelDeclaration*, std::vector<TypePattern>> patterns_;
};

/// The inputs of a choice. Borrows everything.
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
    /// Returns the image of an instance; for an empty instance, the image of the text's own functions.
    std::function<std::shared_ptr<const Image>(const Instance&)> image_of;
};

struct FunctionChoice {
    Instance function;               ///< an empty `kernel` means one of the text's own functions
    std::vector<int> weak_integers;  ///< indices of arguments that alone made a template parameter `int`
};

/// Chooses a function, compiling if necessary. Throws: ArgumentError if template arguments cannot be deduced, or if no
/// overload or several overloads fit; CompileError, LibraryError.
FunctionChoice choose_function(const ChoiceRequest& request);

/// Throws ArgumentError for a Python int that alone made T `int` and exceeds its range: T is never changed silently.
void check_weak_integers(const std::string& kernel, const Signature& declared,
                         const std::vector<int>& weak_integers, std::span<const ArgumentValue> arguments);

/// The functions of a name in the text's own image, without duplicates.
std::vector<KernelImage> functions_named(const std::string& name, const Image& image);

/// Whether the explicit template arguments and the defaults determine the instance, so that no launch argument is
/// needed.
bool says_all(const KernelDeclaration& declaration, const Deduction& deduction);

/// Splits "float*, int" into types, spelled as the tokenizer spells them, so that spaces do not matter.
std::vector<std::string> split_types(const std::string& types);

/// Splits "ns::saxpy<float, 256>" into the kernel's name and the template arguments, which are empty without a `<`.
/// Throws: ArgumentError (value) if the text does not end with `>`.
std::pair<std::string, TemplateArguments> split_instance_name(const std::string& expression);

}  // namespace bascule
