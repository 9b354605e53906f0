// What NVRTC is given for a program, its options and headers, and why it refused an option.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

std::vector<std::string> options_for(const Program& program, const Nvrtc& nvrtc);

/// The prelude, the program's defines, behind which comes `last`, and its headers that are texts.
std::vector<Nvrtc::Header> headers_for(const Program& program, const std::string& last = {});

/// Adds the option with which the compiler makes no code, where it has it.
void make_no_code(std::vector<std::string>& options, const Nvrtc& nvrtc);

/// A sentence of NVRTC's log about an option, with what to write instead.
std::string explain_refused_option(const std::string& log, const Program& program, const Nvrtc& nvrtc);

}  // namespace bascule
