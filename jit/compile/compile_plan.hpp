// Which kernels a compile asks for, under which name expressions, and why others are omitted.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <bascule/jit/compile/declared_lines.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/text/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// One kernel that a compile asks for.
struct WantedKernel {
    std::string name;                             ///< as declared
    std::string expression;                       ///< the name expression
    std::vector<KernelDeclaration> declarations;  ///< of that name
    bool is_instance = false;                     ///< this expression was asked for: it is not omitted
    bool is_overload = false;                     ///< asked for by its type
};

/// Returns what the text says of a kernel that has this number of parameters. If the compiler has told its line, that is the
/// declaration at this line. Otherwise it is what all declarations agree on that may be meant.
KernelDeclaration declaration_of(const WantedKernel& wanted, std::size_t parameters,
                                 const std::vector<KernelDeclaration>& found, const DeclaredLines& lines);

/// Made from a program. The text is read without its macros, so most of the plan is a guess: a compile that fails on name
/// expressions alone revises it and is run again.
class CompilePlan {
  public:
    explicit CompilePlan(const Program& program);

    const std::vector<WantedKernel>& wanted() const noexcept { return wanted_; }
    const std::vector<std::pair<std::string, std::string>>& absent() const noexcept { return absent_; }
    /// All kernels that the text spells.
    const std::vector<KernelDeclaration>& found() const noexcept { return found_; }

    /// A kernel's own name, unless only signatures are wanted, and its signature's; in the order of `wanted`. The variables'
    /// come last.
    std::vector<std::string> name_expressions() const;
    std::size_t expressions_per_kernel() const noexcept { return signatures_only_ ? 1 : 2; }

    /// Asks for overloads one by one, and for no kernel that these diagnostics refuse; false when they are
    /// about none, or about one that was asked for by name. A kernel that is no instance is revised twice at most. One run
    /// of the compiler tells some fifty wrong names: from the fourth time on, it asks for no name that was not asked for.
    bool revise(const std::vector<Diagnostic>& diagnostics);

    /// Why the first instance, or variable, that these diagnostics are about cannot be had: "has no instance ..."; empty
    /// when none.
    std::string refused_instance(const std::vector<Diagnostic>& diagnostics, const Source& source) const;

  private:
    void want(const KernelDeclaration& declaration);
    bool ask_for_no_guess();
    void leave_out(const std::string& name, const std::string& reason);

    bool signatures_only_;
    std::vector<KernelDeclaration> found_;
    int revisions_ = 0;
    std::vector<WantedKernel> wanted_;
    std::vector<Instance> variables_;  // that the image has whether a kernel uses them or not
    std::vector<std::pair<std::string, std::string>> absent_;
};

}  // namespace bascule
