// Plans a compile: which kernels it asks for, under which name expressions, and why others are omitted. Names the kernels
// of the image that the text does not spell: those from macros, includes and explicit instantiations.
#pragma once

#include <map>
#include <span>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// The reason that is given if the compiler does not know the name that the text gives to a kernel.
inline constexpr std::string_view not_seen =
    "is in the text, but the compiler does not see it: an #if removes it for these options, or it is in another namespace "
    "than it appears to be";

/// One kernel that a compile asks for.
struct WantedKernel {
    std::string name;                             ///< as declared
    std::string expression;                       ///< the name expression
    std::vector<KernelDeclaration> declarations;  ///< of that name
    bool is_instance = false;                     ///< this expression was asked for, so it is not omitted
    bool is_overload = false;                     ///< asked for by its type
};

// --- Which declaration the compiler means by a name: it expands macros, evaluates #if and resolves overloads. NVRTC
// does not return the preprocessed text, but its warnings about deprecated functions name the place of their
// declaration.

/// Maps a name expression, without blanks, to the line of the text that declares it: the line of a `__global__` or of a
/// name. The line is 0 if the declaration is not in the text.
using DeclaredLines = std::map<std::string, int>;

/// Returns the text that makes the compiler report these lines; it must follow everything else that precedes the
/// program's text. It is empty if options turn warnings into errors, and for a text without directives and defines,
/// because its kernels can be read from the text.
std::string question_of_declared_lines(const Program& program);

/// Removes these warnings from the log of `program`, whose places are canonical, and returns the lines.
DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions);

/// Returns what the text says of a kernel that has this number of parameters. If the compiler has reported its line,
/// that is the declaration at this line. Otherwise, as for instances of templates, it is what all matching declarations
/// outside of #if agree on; a template matches only an instance.
KernelDeclaration declaration_of(const WantedKernel& wanted, std::size_t parameters,
                                 const std::vector<KernelDeclaration>& found, const DeclaredLines& lines);

/// A plan is made from a program. It reads the text without expanding macros, so most of it is a guess: if a compile
/// fails on name expressions alone, the plan is revised and the compile is run again.
class CompilePlan {
  public:
    explicit CompilePlan(const Program& program);

    const std::vector<WantedKernel>& wanted() const noexcept { return wanted_; }
    const std::vector<std::pair<std::string, std::string>>& absent() const noexcept { return absent_; }
    /// All kernels that the text spells.
    const std::vector<KernelDeclaration>& found() const noexcept { return found_; }

    /// The name expressions: for each kernel, in the order of `wanted`, its own and that of its signature; then those
    /// of the variables. If only signatures are wanted, there are only those of the signatures.
    std::vector<std::string> name_expressions() const;
    std::size_t expressions_per_kernel() const noexcept { return signatures_only_ ? 1 : 2; }

    /// Revises the plan: asks for overloads by their types, and no longer for kernels that these diagnostics refuse.
    /// Returns false if they concern no kernel, or an instance or variable that was asked for by name, which is never
    /// revised. Revises a kernel at most twice. One run of the compiler reports about fifty wrong names, so from the
    /// fourth revision on the plan keeps only names that were asked for.
    bool revise(const std::vector<Diagnostic>& diagnostics);

    /// Why the first instance or variable in these diagnostics does not exist: "has no instance ..."; may be empty.
    std::string refused_instance(const std::vector<Diagnostic>& diagnostics, const Source& source) const;

  private:
    void want(const KernelDeclaration& declaration);
    void leave_out(const std::string& name, const std::string& reason);

    bool signatures_only_;
    std::vector<KernelDeclaration> found_;
    int revisions_ = 0;
    std::vector<WantedKernel> wanted_;
    std::vector<Instance> variables_;  // the image contains them whether a kernel uses them or not
    std::vector<std::pair<std::string, std::string>> absent_;
};

/// The lowered names of the kernels that this PTX defines.
std::vector<std::string> entries_of(std::string_view ptx);

/// A kernel of an image: its C++ name, "ns::add" or "scale<float>", and its lowered name.
struct EntryName {
    std::string name;  ///< empty if C++ has none
    std::string lowered_name;
    std::string overload;  ///< the expression that selects the overload; empty if its types are not known
};

/// The entries of the image's PTX that are not among its kernels. Omits instances of the text's templates, and entries of
/// anonymous namespaces, which no name expression reaches.
std::vector<EntryName> undeclared_entries(const Image& image, const std::vector<KernelDeclaration>& in_text);

/// If a macro opens a namespace around a kernel, the compiler does not find the name that the text has. The kernel gets
/// that name if nothing else in the text or in the image has the same last component.
void name_as_in_text(std::span<KernelImage> undeclared, const Image& image,
                     const std::vector<KernelDeclaration>& in_text);

/// Completes the names of an image that has all functions of its text. A kernel that shares its name only with device
/// functions gets that name as its expression. Kernels that the image has are removed from `absent`.
void name_sole_kernels(Image& image, const Program& program);

}  // namespace bascule
