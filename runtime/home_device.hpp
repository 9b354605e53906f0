// Which device a launch goes to: where its arrays are.
#pragma once

#include <bascule/interface/array_interface.hpp>
#include <bascule/runtime/device.hpp>

namespace bascule {

/// As `resolve(array, device)`, where nobody has said which device it is: unless `decided`, memory of another
/// device makes that one `device`. `decided` is true after an array that lies on one device alone.
ArrayView resolve(const ArrayView& array, Device& device, bool& decided);

}  // namespace bascule
