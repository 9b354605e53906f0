// The driver's rules for tensor maps, in one table.
#pragma once

#include <optional>
#include <string>

#include <bascule/interface/arrays/tensor_map.hpp>

namespace bascule {

/// A broken rule: the argument of bascule.tensor_map that breaks it, and a sentence that gives the wrong value and says
/// what is valid.
struct BrokenRule {
    std::string field;
    std::string sentence;
};

/// The first rule of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col that the description breaks. Source: the comments of
/// these functions in <cuda.h> of CUDA 13.3. Where it differs from that of 12.0 (extents up to 2**31, not 2**32), the stricter rule
/// is used, because coordinates are signed integers of 32 bits.
std::optional<BrokenRule> broken_rule(const TensorMapDescription& description);

}  // namespace bascule
