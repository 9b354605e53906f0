// The bytes that a kernel gets for bascule::array_view and masked_view, as the prelude defines them.
#pragma once

#include <cstddef>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// The size of the prelude's view of this rank in bytes, without and with bounds checks.
struct ViewBytes {
    std::size_t plain = 0;
    std::size_t checked = 0;
};
ViewBytes view_bytes(bool masked, int rank) noexcept;

/// Writes the view that `parameter` declares, with the mask of `seen`. The parameter's size must be one of view_bytes,
/// and `seen` must have as many dimensions as the parameter.
void write_view(const ArrayView& seen, const Parameter& parameter, std::byte* out) noexcept;

}  // namespace bascule
