// The line of the user's Python that issues an operation, for reports of races and faults and for bascule.debug.
#pragma once

#include <cstdint>
#include <string>

#include <bascule/runtime/faults/launch_history.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// A Python file as messages name it: a cell of a notebook is In[3]. The GIL is held. Throws: error_already_set.
std::string display_name(const pybind11::handle& file);

/// An instruction of a code object, as an address within that object: it has its instructions in itself, so that no two
/// objects have the same address. Even; 0 outside Python.
using CodePlace = std::uintptr_t;

inline CodePlace place_in(const PyCodeObject* code, int instruction) noexcept {
    return reinterpret_cast<std::uintptr_t>(code) + static_cast<std::uintptr_t>(instruction);
}
/// Returns the place of the innermost Python code. The caller holds the GIL.
[[gnu::always_inline]] inline CodePlace current_place() noexcept {
    PyFrameObject* const frame = PyEval_GetFrame();
    if (frame == nullptr) return 0;
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const CodePlace place = place_in(code, PyFrame_GetLasti(frame));
    Py_DECREF(code);  // it runs
    return place;
}

/// A line of the user's program: "train.py:12: kernel[8, 128](x)"; none outside Python.
struct CallSite {
    LaunchSite site{};
    CodePlace place{};  ///< of that line, whose code object lives as long as the process
};
/// The line that runs now. After the first time a look-up. The GIL is held.
CallSite current_call() noexcept;
inline LaunchSite current_site() noexcept { return current_call().site; }

/// The same for `x[4, 4]`, and whether the brackets hold one tuple in parentheses: `x[(4, 4)]`. False where the
/// text of the line is not known.
struct SubscriptSite {
    CallSite call{};
    bool one_tuple = false;
};
SubscriptSite current_subscript() noexcept;

/// From now on the emulated device asks for the Python line of every operation while it looks for races. Does
/// nothing on a GPU. Thread-safe; the driver must be loaded.
void report_call_sites() noexcept;

/// The site to report for a launch: where its launcher was created, or, while launches are watched, the line that
/// launches.
inline LaunchSite launch_site(LaunchSite made) noexcept { return watches_anything() ? current_site() : made; }

}  // namespace bascule::python
