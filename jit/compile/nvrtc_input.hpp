// What NVRTC gets for a program in addition to its text: options, the prelude and other headers; and why it refuses options.
#pragma once

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

// The prelude is the device header that all programs get by -include, before their own first line.

inline constexpr const char* prelude_name = "bascule_prelude.h";

/// The whole prelude: signatures, views, bounds checks, loops, variables.
const std::string& whole_prelude();
/// The part that all programs get, a third of the prelude: the templates that reflection needs, and names of nvcc.
const std::string& signature_prelude();

/// The part of the prelude that this program can use, because a small kernel compiles 6 % faster without the views. It
/// is the whole prelude for the type of a variable, with the option `debug` and with options in `extra`, and if the
/// text, a define or an instance names `bascule`, includes a header, or could spell either (##, a continued line).
const std::string& prelude_for(const Program& program);

/// NVRTC's arguments for this program. Throws: ArgumentError (value) that names the option.
std::vector<std::string> options_for(const Program& program, const Nvrtc& nvrtc);

/// The headers that NVRTC gets as texts: the prelude, the program's defines followed by `last`, and the program's
/// in-memory headers.
std::vector<Nvrtc::Header> headers_for(const Program& program, const std::string& last = {});

/// Adds the option that suppresses code generation, if the compiler has it.
void make_no_code(std::vector<std::string>& options, const Nvrtc& nvrtc);

/// A sentence from NVRTC's log about a refused option, with what to write instead.
std::string explain_refused_option(const std::string& log, const Program& program, const Nvrtc& nvrtc);

}  // namespace bascule
