// A fault as a person reads it, and who reads it.
#pragma once

#include <string>

#include "machine/grid.hpp"
#include "memory/heap.hpp"

namespace emulated::report {

/// Several lines without a trailing newline, the first with what the kernel did and where:
/// "illegal address: kernel 'past' wrote 4 bytes of global memory at line 7 of saxpy.cu\n  address 0x...: 4 bytes past
/// the 4096-byte allocation 'y'\n  in block (3,0,0), thread (255,0,0), PTX line 41\n  12 other threads of the block
/// did the same". Kernel names are demangled.
std::string describe(const machine::Fault& fault, const memory::Heap& heap);

/// "scale" for "_Z5scalePffi"; the name itself where it is not mangled.
std::string demangled(const std::string& kernel);

/// The driver's code (CUresult) for a kind of fault: 700, 702, 710, 715, 716, 717, 718, 719.
int driver_code(machine::Fault::Kind kind) noexcept;

// Reports for people whose program does not ask for them, because it knows the CUDA driver alone: on stderr.

/// Reports are written from now on, unless somebody reads them.
void write_unread_reports() noexcept;
/// Somebody reads them.
void expect_reader() noexcept;
/// Writes a report, if it would be lost.
void tell(const std::string& report) noexcept;

}  // namespace emulated::report
