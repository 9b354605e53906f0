// A header's content, reduced to what a scan needs of it, read once a process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/headers/include_directives.hpp>

namespace bascule {

struct HeaderFacts {
    FileIdentity identity;
    std::int64_t read_ns = 0;  ///< before it was read
    Digest digest;
    IncludeDirectives directives;
};

/// The facts of the file at `path`, which has this identity; remembered, because the next program that reaches
/// CUB need not read it again. Null when the file cannot be read, or changes while it is. Thread-safe.
std::shared_ptr<const HeaderFacts> facts_of(const std::string& path, const FileIdentity& identity);

}  // namespace bascule
