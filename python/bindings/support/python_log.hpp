// Messages about compiles for Python's `logging`.
#pragma once

#include <bascule/jit/process/services.hpp>

namespace bascule::python {

/// Writes to the loggers "bascule.cache" and "bascule.jit", if the program has imported `logging`. Any thread may call it.
extern const LogHandler python_log;

}  // namespace bascule::python
