// What threads and destructors may still use while the process ends.
#pragma once

namespace bascule {

/// The one T of the process, which a file declares for itself: made at the first use, and never destroyed.
template <class T>
T& never_destroyed() {
    static T& made = *new T;
    return made;
}

}  // namespace bascule
