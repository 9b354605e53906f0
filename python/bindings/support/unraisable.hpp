// Python code in functions that cannot raise: what it raises is reported and dropped.
#pragma once

#include <exception>

#include <pybind11/pybind11.h>

#include "support/gil.hpp"

namespace bascule::python {

/// Calls into Python; what is raised goes to sys.unraisablehook, as of `place`. Needs the GIL.
template <class Call>
void call_unraisable(const char* place, const Call& call) noexcept {
    try {
        try {
            into_python(call);
        } catch (pybind11::error_already_set& error) {
            into_python([&] { error.discard_as_unraisable(place); });
        }
    } catch (const std::exception&) {  // no memory for a report
    }
}

}  // namespace bascule::python
