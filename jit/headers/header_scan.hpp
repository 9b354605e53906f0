// Follows a program's #include lines to every header that a compile may read: a superset of what it does
// read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/source.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

struct HeaderScan {
    /// False: the program is doubtful. What it reads is not proven by its texts (__TIME__, an alias of __has_include, an
    /// #include of what a macro of the compiler's names, options that may name files, thousands of headers): it must be
    /// compiled each time.
    bool certain = true;
    bool names_headers = false;  ///< the texts include or probe for something
    HeaderManifest manifest;
    std::string doubt{};  ///< why it is not certain, as a sentence without its end
};

/// A directory that is searched behind the program's own.
struct SearchPath {
    std::string path;
    /// Files in it that have not changed since then are an installation's, which users do not edit; 0: all are a
    /// user's.
    std::int64_t installed_ns = 0;
};

/// When the CUDA headers in this directory were installed, by the newest of some of them; 0 without those.
std::int64_t installed_ns(const std::string& directory);

/// Goes through the text, its in-memory headers, and what they include from the source's directory, the
/// include paths and `toolkit`, as NVRTC looks for it; reads the files. Ends whatever the headers do.
HeaderScan scan_headers(const Source& source, const CompileOptions& options,
                        std::span<const SearchPath> toolkit);

/// The kernel templates of the headers that a text includes, which are in no image until one is asked for: of headers
/// that are texts, and of files beside the source and in the include paths; not of CUDA's. None of files where a program is
/// doubtful. Reads the files.
std::vector<KernelDeclaration> header_templates(const Source& source, const CompileOptions& options);

}  // namespace bascule
