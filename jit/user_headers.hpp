// The user's own headers that a text reaches: an edit of one must never be missed by a cache.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/source.hpp>

namespace bascule {

/// What is known of a text's headers outside the toolkit.
struct UserHeaders {
    bool certain = true;  ///< false: something was included that a scan cannot follow; do not cache
    std::string state;    ///< path and digest of each, in order of discovery; empty when there are none
};

/// Follows `#include` lines, whatever #if they stand in, through the source's directory and the include
/// paths, and through `toolkit`'s directories only where the user's could stand before them. Reads the files.
UserHeaders scan_user_headers(const Source& source, const CompileOptions& options,
                              const std::vector<std::string>& toolkit);

}  // namespace bascule
