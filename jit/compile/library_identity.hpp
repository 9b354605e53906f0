// Which build of a shared library a file is, without reading all of it.
#pragma once

#include <string>

namespace bascule {

/// Two files of equal identity hold the same code. Empty when the file cannot be read.
///
/// It is the linker's build ID, which is a SHA-1 of what was linked, with the file's size and time of change
/// of content. Reading and hashing the 100 MB of an NVRTC instead would take 30 to 100 ms of every process.
/// The build ID alone would miss a file that was patched after linking; that changes its time. A file without
/// a build ID is hashed.
std::string library_identity(const std::string& path);

}  // namespace bascule
