// What the handles that go from process to process have in common: a file that the importer opens through /proc.
#pragma once

#include <cstdint>

#include "driver/process.hpp"
#include "streams/shared_mark.hpp"

namespace emulated::driver {

/// An open file of a process. A value that means the same in all of them.
struct SharedFile {
    std::int32_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t inode = 0;  ///< which another process of that number does not have

    /// A file of this process.
    static SharedFile of(int descriptor) noexcept;
    bool is_own() const noexcept;
    /// A descriptor of one's own; -1 where the process has ended, or belongs to another user, and then a report says so.
    int open() const;

    bool operator==(const SharedFile&) const = default;
};

/// Whether what the event marks is the newest record by this process, which its streams know more of.
bool is_newest_here(const Event& event) noexcept;
/// The next record of the event on `target` is everybody's.
CUresult begin_shared_record(Event& event, const StreamTarget& target);
/// Later work on `target` runs after the newest record, which another process made.
CUresult wait_for_other_process(const Event& event, const StreamTarget& target);
/// The host waits for it.
void wait_for_other_process(const Event& event, Context& context);

}  // namespace emulated::driver
