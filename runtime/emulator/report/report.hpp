// Describes faults as text, and prints reports that no client reads.
#pragma once

#include <string>

#include "machine/grid.hpp"
#include "memory/heap.hpp"

namespace emulated::report {

/// Several lines without a trailing newline. Kernel names are demangled. For example:
///     illegal address: kernel 'past' wrote 4 bytes of global memory at line 7 of saxpy.cu
///       address 0x...: 4 bytes past the 4096-byte allocation 'y'
///       in block (3,0,0), thread (255,0,0), PTX line 41
///       12 other threads of the block did the same
std::string describe(const machine::Fault& fault, const memory::Heap& heap);

/// "scale" for "_Z5scalePffi"; a name that is not mangled is returned as it is.
std::string demangled(const std::string& kernel);

/// The driver's code (CUresult) for a kind of fault: 700, 702, 710, 715, 716, 717, 718, 719.
int driver_code(machine::Fault::Kind kind) noexcept;

// Prints reports to stderr for programs that use only the CUDA driver API.

/// From now on, prints reports unless a client reads them.
void write_unread_reports() noexcept;
/// Declares that a client reads reports, so that nothing is printed.
void expect_reader() noexcept;
/// Prints a report if `write_unread_reports` was called and no client reads reports.
void tell(const std::string& report) noexcept;

}  // namespace emulated::report
