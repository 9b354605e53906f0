// A program of which the compiler is asked what its image does not tell: it answers from the headers of that image.
#pragma once

#include <memory>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

struct ProbedProgram {
    Program program;
    Cache::Lookup made;  ///< its image
    Cache& cache;

    /// The image of a question: of `program` with another text behind its own, or for another purpose. Where it is not
    /// known which headers the program reads, it is compiled again, and must be the same. Throws: Error when a header
    /// has changed since the program was compiled; CompileError, LibraryError.
    std::shared_ptr<const Image> ask(Program question) const;
    /// Whether a compile of the program would read the headers of its image here and now. Where they are not known, it is
    /// compiled again. Throws: LibraryError.
    bool is_current() const;
};

}  // namespace bascule
