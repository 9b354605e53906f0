// The facts about a header that a scan needs. Each header is read once per process.
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

/// The facts of the file at `path`, which has this identity. They are remembered, so that the next program that
/// includes CUB need not read it again. Null if the file cannot be read or changes meanwhile. Thread-safe.
std::shared_ptr<const HeaderFacts> facts_of(const std::string& path, const FileIdentity& identity);

}  // namespace bascule
