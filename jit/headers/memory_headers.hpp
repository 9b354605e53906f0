// Headers that are texts, as the compiler gets them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// `options.headers` with names that lead to where a file's would: NVRTC knows such headers by their whole names alone,
/// while `#include "y.h"` in a/x.h means a/y.h where there is one. Every line keeps its number.
std::vector<std::pair<std::string, std::string>> memory_headers(const CompileOptions& options);

}  // namespace bascule
