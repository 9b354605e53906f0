// The line of the user's Python code that issues an operation, for reports of races and faults and for bascule.debug.
#pragma once

#include <cstdint>

#include <bascule/runtime/faults/launch_history.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The name of a Python file in messages: a notebook's cell is In[3]. Needs the GIL. Throws: error_already_set.
std::string display_name(const py::handle& file);

/// An instruction in a code object, as an address within that object. Code objects contain their instructions, so no
/// two have equal addresses. The address is even; it is 0 outside Python.
using CodePlace = std::uintptr_t;

inline CodePlace place_in(const PyCodeObject* code, int instruction) noexcept {
    return reinterpret_cast<std::uintptr_t>(code) + static_cast<std::uintptr_t>(instruction);
}
/// Returns the place of the innermost Python code. Needs the GIL.
[[gnu::always_inline]] inline CodePlace current_place() noexcept {
    PyFrameObject* const frame = PyEval_GetFrame();
    if (frame == nullptr) return 0;
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const CodePlace place = place_in(code, PyFrame_GetLasti(frame));
    Py_DECREF(code);  // safe: the code is running
    return place;
}

/// A line of the user's program: "train.py:12: kernel[8, 128](x)". Empty outside Python.
struct CallSite {
    LaunchSite site{};
    CodePlace place{};  ///< the place of that line, whose code object is never freed
};
/// The line that is running. After the first time, this takes one look-up. Needs the GIL.
CallSite current_call() noexcept;
inline LaunchSite current_site() noexcept { return current_call().site; }

/// The line that evaluates a subscript. `one_tuple`: the brackets hold one tuple in parentheses, as in `x[(4, 4)]`.
/// False if the text of the line is unknown.
struct SubscriptSite {
    CallSite call{};
    bool one_tuple = false;
};
SubscriptSite current_subscript() noexcept;

/// Makes the emulated device ask for the Python line of every operation while race detection is on. Does nothing on a
/// GPU. Thread-safe; the driver must be loaded.
void report_call_sites() noexcept;

/// The site to report for a launch: the line that made its launcher, or, if launches are watched, the launching line.
inline LaunchSite launch_site(LaunchSite made) noexcept { return watches_anything() ? current_site() : made; }

}  // namespace bascule::python
