// The base of handles shared between processes: a file that the importer opens through /proc.
#pragma once

#include <cstdint>

#include "driver/process.hpp"
#include "streams/shared_mark.hpp"

namespace emulated::driver {

/// An open file of a process. The value means the same in all processes.
struct SharedFile {
    std::int32_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t inode = 0;  ///< distinguishes it from a file of a later process with the same number

    /// Describes a file of this process.
    static SharedFile of(int descriptor) noexcept;
    bool is_own() const noexcept;
    /// Opens the file with a descriptor of this process. Returns -1 with a report if the process has ended or belongs
    /// to another user.
    int open() const;

    bool operator==(const SharedFile&) const = default;
};

/// True if this process made the event's newest record. Then the event's own state answers queries and waits.
bool is_newest_here(const Event& event) noexcept;
/// Begins a record of the event on `target` that all processes see.
void begin_shared_record(Event& event, const StreamTarget& target);
/// Orders later work on `target` after the newest record, which another process made.
void wait_for_other_process(const Event& event, const StreamTarget& target);
/// Blocks the host until the newest record, which another process made, is reached.
void wait_for_other_process(const Event& event, Context& context);

}  // namespace emulated::driver
