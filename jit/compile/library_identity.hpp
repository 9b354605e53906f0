// Identifies the build of a shared library without reading the whole file.
#pragma once

#include <string>

namespace bascule {

/// Files with equal identities hold the same code. Empty if the file cannot be read.
///
/// The identity is the linker's build ID, a SHA-1 of the linked content, with the file's size and modification time.
/// Reading and hashing the 100 MB of an NVRTC would take 30 to 100 ms in every process. The build ID alone would miss a
/// file that was patched after linking; patching changes its time. A file without a build ID is hashed.
std::string library_identity(const std::string& path);

}  // namespace bascule
