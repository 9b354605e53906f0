// Which device a launch goes to: where its arrays are.
#pragma once

#include <string>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Where a launch goes, as far as its arguments have been read.
struct Home {
    Device device;
    bool decided = false;  ///< by a stream, or by an array that lies on one device alone
    bool by_stream = false;
    bool peer = false;  ///< arrays of other devices are taken, and their memory is opened to `device`
};

/// As `resolve(array, home.device)`, in place, where nobody may have said which device it is: unless decided,
/// memory of another device makes that one the home. `array.device` says where its stream is when that is
/// another device.
void resolve_at_home(ArrayView& array, Home& home);

/// "the launch goes to device 0, where its stream is": for messages.
std::string describe(const Home& home);

}  // namespace bascule
