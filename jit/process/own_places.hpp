// Where files that belong to Bascule are looked for at run time: beside the binary that this code is part of.
#pragma once

#include <filesystem>
#include <vector>

namespace bascule {

/// The directory of that program or shared library, the lib directories beside it, and the directories that it
/// was linked to search; empty when the system does not say. Never throws.
std::vector<std::filesystem::path> own_places();

}  // namespace bascule
