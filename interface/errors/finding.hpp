// One place in a kernel where a check of the emulated device failed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace bascule {

/// A thread of a kernel, and what it did at a line of the kernel.
struct ThreadAction {
    std::string what{};         ///< "wrote 4 bytes"
    std::string file{};         ///< the user's file, or a header; empty if unknown
    int line = 0;               ///< in that file, from 1; 0 if unknown
    std::string source_line{};  ///< its text; empty if unknown
    std::array<std::uint32_t, 3> block{}, thread{};

    bool operator==(const ThreadAction&) const = default;
};

/// A place in a kernel where a check failed, and the first thread that was there. Of a race between streams only `kind`
/// and `report` are set.
struct Finding : ThreadAction {
    std::string kind{};         ///< the name of the check: "init"
    std::string kernel{};       ///< with its template arguments
    std::uint64_t count = 0;    ///< how many threads did the same, with the first one
    std::uint64_t address = 0;  ///< of the access; in shared memory the byte's number; 0 if there was none
    std::uint64_t bytes = 0;    ///< of the access
    std::string space{};        ///< "global", "shared" or "local"; empty if there was no access
    std::string index{};        ///< "y[i + 1] is y[1024]"; empty if it is not certain
    std::optional<ThreadAction> other{};  ///< the other side of a race between threads
    std::string advice{};                 ///< what to write instead; may be empty
    std::string launch{};                 ///< the line that launched the kernel: "train.py:12: k[8, 128](x)"
    std::string report{};                 ///< all of this, in several lines

    bool operator==(const Finding&) const = default;
};

}  // namespace bascule
