// Which device a launch goes to: where its arrays are.
#pragma once

#include <bascule/interface/array_interface.hpp>
#include <bascule/runtime/device.hpp>

namespace bascule {

/// As `resolve(array, device)`, in place, where nobody may have said which device it is: unless `decided`,
/// memory of another device makes that one `device`. `decided` is true after an array that lies on one device
/// alone.
void resolve_at_home(ArrayView& array, Device& device, bool& decided);

}  // namespace bascule
