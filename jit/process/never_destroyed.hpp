// Objects that threads and destructors may still use while the process ends.
#pragma once

namespace bascule {

/// The only T of the process, where T is a type of one file: made at first use, and never destroyed.
template <class T>
T& never_destroyed() {
    static T& made = *new T;
    return made;
}

}  // namespace bascule
