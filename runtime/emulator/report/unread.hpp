// Reports for people whose program does not ask for them, because it knows the CUDA driver alone: on stderr.
#pragma once

#include <string>

namespace emulated::report {

/// Reports are written from now on, unless somebody reads them.
void write_unread_reports() noexcept;
/// Somebody reads them.
void expect_reader() noexcept;
/// Writes a report, if it would be lost.
void tell(const std::string& report) noexcept;

}  // namespace emulated::report
