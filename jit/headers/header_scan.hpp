// Follows a program's #include lines to every header that a compile may read, whatever #if they are in.
#pragma once

#include <span>

#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

struct HeaderScan {
    /// False: the program is doubtful and must be compiled each time, because its texts do not prove what it reads.
    /// Examples are __TIME__, an alias of __has_include, an #include of a macro that the compiler may define,
    /// options that may name files, and too many headers.
    bool certain = true;
    bool names_headers = false;  ///< the texts include or probe for something
    HeaderManifest manifest;
    std::string doubt{};  ///< why it is not certain, as a clause for messages
};

/// A directory that is searched after the program's own.
struct SearchPath {
    std::string path;
    /// Files in it that have not changed since then were installed, and users do not edit them. 0: all files count
    /// as the user's.
    std::int64_t installed_ns = 0;
};

/// The time at which the installation of the CUDA headers in this directory is taken to have ended: five minutes after
/// the last change of certain headers. 0 if the directory has no such header.
std::int64_t installed_ns(const std::string& directory);

/// Scans the text, its in-memory headers, and the headers that these include. Searches the source's directory, the
/// include paths and `toolkit` in NVRTC's order, and reads the files. Terminates even if headers include each other.
HeaderScan scan_headers(const Source& source, const CompileOptions& options,
                        std::span<const SearchPath> toolkit);

/// The kernel templates of the headers that a text includes, because an image has only the instances that were asked
/// for. Reads in-memory headers, and files in the source's directory and the include paths, but not Bascule's search
/// path. Skips the files if the program is doubtful.
std::vector<KernelDeclaration> header_templates(const Source& source, const CompileOptions& options);

}  // namespace bascule
