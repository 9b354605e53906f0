// What a person probably meant: one line of help for the mistakes that are common.
#pragma once

#include <string>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

/// A sentence without "help: "; empty when there is nothing to say. `diagnostic` as parse_log gave it.
std::string help_for(const Diagnostic& diagnostic, const Source& source);

/// Lines about directories of the options that are none, where a header was not found; empty without any.
std::string help_for_directories(const std::vector<Diagnostic>& diagnostics, const CompileOptions& options);

/// A string that its line does not close.
bool is_unclosed_string(const Diagnostic& diagnostic);

}  // namespace bascule
