// The type and shape of one of a program's variables, by a compile that makes no code.
#pragma once

#include <string>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/text/program.hpp>
#include <bascule/jit/types/variable.hpp>

namespace bascule {

/// Asks the compiler, through the cache. `program` says text, options and architecture; its instances and its
/// purpose do not matter. Throws: CompileError; its `name_expression` is set where the text is right and the
/// name is not.
Variable reflect_variable(Cache& cache, Program program, const std::string& name);

}  // namespace bascule
