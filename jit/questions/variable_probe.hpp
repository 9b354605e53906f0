// Reads the type and shape of a program's variable by a compile without code generation.
#pragma once

#include <string>

#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/variables/variable.hpp>

namespace bascule {

/// Throws: CompileError, whose `name_expression` is set if the text is right and the name is not; what `ask` throws.
Variable reflect_variable(const ProbedProgram& probed, const std::string& name);

}  // namespace bascule
