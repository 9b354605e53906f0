// The type and shape of one of a program's variables, by a compile that makes no code.
#pragma once

#include <string>

#include <bascule/jit/probes/probed_program.hpp>
#include <bascule/jit/types/variable.hpp>

namespace bascule {

/// Throws: CompileError; its `name_expression` is set where the text is right and the name is not; as `ask`.
Variable reflect_variable(const ProbedProgram& probed, const std::string& name);

}  // namespace bascule
