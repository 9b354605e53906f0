// The line of the user's Python that issues an operation, for reports of races and faults and for bascule.debug.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include <bascule/runtime/faults/launch_history.hpp>

namespace bascule::python {

/// A Python file as messages name it: a cell of a notebook is In[3]. The GIL is held. Throws: error_already_set.
std::string display_name(const pybind11::handle& file);

/// The line of the user's program that runs now: "train.py:12: kernel[8, 128](x)"; none outside Python. After
/// the first time a look-up. The GIL is held.
LaunchSite current_site() noexcept;

/// The same for `x[4, 4]`, and whether the brackets hold one tuple in parentheses: `x[(4, 4)]`. False where the
/// text of the line is not known.
struct SubscriptSite {
    LaunchSite site;
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
