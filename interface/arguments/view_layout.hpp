// bascule::array_view and masked_view as the prelude lays them out: the bytes that a kernel gets.
#pragma once

#include <cstddef>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// What the prelude's view of this rank takes, in bytes; 8 more where it checks bounds.
struct ViewBytes {
    std::size_t plain = 0;
    std::size_t checked = 0;
};
ViewBytes view_bytes(bool masked, int rank) noexcept;

/// Writes the view that `parameter` declares; its size must be one of view_bytes. The mask is the array's,
/// with `seen` as many dimensions as the parameter has.
void write_view(const ArrayView& seen, const Parameter& parameter, std::byte* out) noexcept;

}  // namespace bascule
