// A compiled program about which the compiler can be asked more, such as the type and shape of a variable. Answers are
// valid for the headers of the compiled image.
#pragma once

#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/variables/variable.hpp>

namespace bascule {

struct ProbedProgram {
    Program program;
    Cache::Lookup made;  ///< its image
    Cache& cache;

    /// Compiles a question: `program` with text appended, or for another purpose. If its headers are not known, also
    /// compiles the program again and compares the code. Throws: Error if a header has changed since the program was
    /// compiled; CompileError, LibraryError.
    std::shared_ptr<const Image> ask(Program question) const;
    /// Whether a compile of the program would now read the headers of its image. If they are not known, compiles it
    /// again and compares the code. Throws: LibraryError.
    bool is_current() const;
};

/// Throws: CompileError, whose `name_expression` is set if the text is right and the name is not; what `ask` throws.
Variable reflect_variable(const ProbedProgram& probed, const std::string& name);

}  // namespace bascule
