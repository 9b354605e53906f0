// What IPython, help() and inspect ask of Bascule's objects. The answers are made in Python, in bascule._display.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Gives the classes `_repr_html_`, `_repr_pretty_`, and, by instance, `__doc__` and `__signature__`. They must be bound
/// already. bascule._display is imported when one of them is asked for.
void bind_display(pybind11::module_& module);

}  // namespace bascule::python
