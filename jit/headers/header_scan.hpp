// Follows a program's #include lines to every header that a compile may read: a superset of what it does
// read.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

struct HeaderScan {
    /// False: what the program reads cannot be known from its text (#include MACRO, __TIME__, options that
    /// name files in ways of their own, thousands of headers): it must be compiled each time.
    bool certain = true;
    HeaderManifest manifest;
};

/// Goes through the text, its in-memory headers, and what they include from the source's directory, the
/// include paths and `toolkit`, as NVRTC looks for it; reads the files. Ends whatever the headers do.
HeaderScan scan_headers(const Source& source, const CompileOptions& options,
                        const std::vector<std::string>& toolkit);

}  // namespace bascule
