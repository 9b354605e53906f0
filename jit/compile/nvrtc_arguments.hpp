// The options and headers that NVRTC gets for a program, and the reasons why it refuses options.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

std::vector<std::string> options_for(const Program& program, const Nvrtc& nvrtc);

/// The prelude, the program's defines followed by `last`, and the headers that it has as texts.
std::vector<Nvrtc::Header> headers_for(const Program& program, const std::string& last = {});

/// Adds the option that suppresses code generation, if the compiler has it.
void make_no_code(std::vector<std::string>& options, const Nvrtc& nvrtc);

/// A sentence from NVRTC's log about a refused option, with what to write instead.
std::string explain_refused_option(const std::string& log, const Program& program, const Nvrtc& nvrtc);

}  // namespace bascule
